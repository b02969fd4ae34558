//! Seeded sequences that every PE and every version must agree on.
