//! Total exchange.
