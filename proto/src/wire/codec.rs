//! Conversion of values to and from protobuf. [`record!`] and [`messages!`] convert types whose fields have
//! the same names in both forms; everything else implements [`Wire`] by hand.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use super::WireError;
use crate::cost::Link;
use crate::items::{Destination, Message};
use crate::{DeliveryId, MessageId, PeId, RoundId, Time};

/// A value with a form in protobuf.
pub(super) trait Wire: Sized {
    /// The generated type.
    type Pb;

    /// Returns the value as protobuf.
    fn put(&self) -> Self::Pb;

    /// Parses and checks a value from another process.
    fn parse(pb: Self::Pb) -> Result<Self, WireError>;
}

/// Implements [`Wire`] for structs, field by field. `name as field` is a field with another name in
/// protobuf. Fields that differ are given in both forms: those to `put`, and those to `parse`. `check`
/// returns the fault of a parsed value.
macro_rules! record {
    ($own:ident = $pb:ident { $($fields:tt)* } $(, $check:expr)?) => {
        $crate::wire::codec::record! { $own = $pb { $($fields)* } put _own {} parse pb {} $(, $check)? }
    };
    (
        $own:ident = $pb:ident { $($name:ident $(as $field:ident)?),* $(,)? }
        put $from:ident { $($other:ident: $put:expr),* $(,)? }
        parse $wire:ident { $($special:ident: $parsed:expr),* $(,)? }
        $(, $check:expr)?
    ) => {
        impl $crate::wire::codec::Wire for $own {
            type Pb = $crate::wire::pb::$pb;

            fn put(&self) -> Self::Pb {
                let $from = self;
                let $own { $($($field:)? $name,)* .. } = self;
                $crate::wire::pb::$pb {
                    $($name: $crate::wire::codec::Wire::put($name),)*
                    $($other: $put),*
                }
            }

            fn parse($wire: Self::Pb) -> Result<$own, $crate::wire::WireError> {
                $(let $special = $parsed;)*
                $(let $name = $crate::wire::codec::Wire::parse($wire.$name)?;)*
                let parsed = $own { $($($field:)? $name,)* $($special),* };
                $($check(&parsed)?;)?
                Ok(parsed)
            }
        }
    };
}
pub(super) use record;

/// Implements the conversion of an enum of control messages, whose variants are named like the messages
/// in protobuf. Each variant has a value that is the `whole` message, or the `fields` of the message as
/// in [`record!`]. Any other message is refused with the text `foreign`.
macro_rules! messages {
    (
        $own:ident, $foreign:literal $(, $check:expr)?;
        whole: $($whole:ident.$value:tt),*;
        fields: $($kind:ident { $($name:ident $(as $field:tt)?),* }),* $(,)?
    ) => {
        impl $own {
            /// Returns the name of the message's kind, for errors: the lists of a message may be as long
            /// as a frame permits.
            pub fn kind(&self) -> &'static str {
                match self {
                    $($own::$whole { .. } => stringify!($whole),)*
                    $($own::$kind { .. } => stringify!($kind),)*
                }
            }

            /// Appends the frame with its length prefix.
            pub fn put(&self, out: &mut Vec<u8>) {
                $crate::wire::put_frame(&self.message(), out);
            }

            fn message(&self) -> pb::Control {
                use $crate::wire::codec::Wire;
                let kind = match self {
                    $($own::$whole { $value: whole } => pb::control::Kind::$whole(whole.put()),)*
                    $($own::$kind { $($($field:)? $name),* } => {
                        pb::control::Kind::$kind(pb::$kind { $($name: $name.put()),* })
                    })*
                };
                pb::Control { kind: Some(kind) }
            }

            /// Parses the body of a frame.
            pub fn parse(body: &[u8]) -> Result<$own, WireError> {
                use $crate::wire::codec::Wire;
                let message = match decode(body)? {
                    $(pb::control::Kind::$whole(whole) => $own::$whole { $value: Wire::parse(whole)? },)*
                    $(pb::control::Kind::$kind(pb::$kind { $($name),* }) => {
                        $(let $name = Wire::parse($name)?;)*
                        $own::$kind { $($($field:)? $name),* }
                    })*
                    _ => return Err(WireError::malformed($foreign)),
                };
                $($check(&message)?;)?
                Ok(message)
            }
        }
    };
}
pub(super) use messages;

/// Implements [`Wire`] for an enum whose variants have the same names in both forms. A number of any
/// other variant, `code`, has the given result, or is malformed for this reason.
macro_rules! codes {
    ($own:ident { $($variant:ident),* }, $fault:literal) => {
        $crate::wire::codec::codes! {
            $own { $($variant),* },
            code => Err($crate::wire::WireError::malformed(format!("{code} {}", $fault)))
        }
    };
    ($own:ident { $($variant:ident),* }, $code:ident => $other:expr) => {
        impl $crate::wire::codec::Wire for $own {
            type Pb = i32;

            fn put(&self) -> i32 {
                match self {
                    $($own::$variant => $crate::wire::pb::$own::$variant.into(),)*
                }
            }

            fn parse($code: i32) -> Result<$own, $crate::wire::WireError> {
                match $crate::wire::pb::$own::try_from($code) {
                    $(Ok($crate::wire::pb::$own::$variant) => Ok($own::$variant),)*
                    _ => $other,
                }
            }
        }
    };
}
pub(super) use codes;

/// Implements [`Wire`] for types that protobuf has as well.
macro_rules! same {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            type Pb = $type;

            fn put(&self) -> $type {
                Clone::clone(self)
            }

            fn parse(pb: $type) -> Result<$type, WireError> {
                Ok(pb)
            }
        }
    )*};
}
same!(bool, u32, u64, f64, String, Bytes);

/// Implements [`Wire`] for numbers with a name.
macro_rules! number {
    ($($id:ident($number:ty)),*) => {$(
        impl Wire for $id {
            type Pb = $number;

            fn put(&self) -> $number {
                self.0
            }

            fn parse(pb: $number) -> Result<$id, WireError> {
                Ok($id(pb))
            }
        }
    )*};
}
number!(
    PeId(u32),
    DeliveryId(u32),
    MessageId(u64),
    RoundId(u64),
    Time(u64)
);

impl<T: Wire> Wire for Vec<T> {
    type Pb = Vec<T::Pb>;

    fn put(&self) -> Vec<T::Pb> {
        self.iter().map(T::put).collect()
    }

    fn parse(pb: Vec<T::Pb>) -> Result<Vec<T>, WireError> {
        pb.into_iter().map(T::parse).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    type Pb = Option<T::Pb>;

    fn put(&self) -> Option<T::Pb> {
        self.as_ref().map(T::put)
    }

    fn parse(pb: Option<T::Pb>) -> Result<Option<T>, WireError> {
        pb.map(T::parse).transpose()
    }
}

/// Nanoseconds; a duration from a user is far below their maximum.
impl Wire for Duration {
    type Pb = u64;

    fn put(&self) -> u64 {
        self.as_nanos() as u64
    }

    fn parse(pb: u64) -> Result<Duration, WireError> {
        Ok(Duration::from_nanos(pb))
    }
}

impl Wire for OsString {
    type Pb = Bytes;

    fn put(&self) -> Bytes {
        Bytes::copy_from_slice(self.as_bytes())
    }

    fn parse(pb: Bytes) -> Result<OsString, WireError> {
        Ok(OsString::from_vec(pb.into()))
    }
}

impl Wire for PathBuf {
    type Pb = Bytes;

    fn put(&self) -> Bytes {
        Bytes::copy_from_slice(self.as_os_str().as_bytes())
    }

    fn parse(pb: Bytes) -> Result<PathBuf, WireError> {
        Ok(OsString::parse(pb)?.into())
    }
}

/// One PE, or absent for all others.
impl Wire for Destination {
    type Pb = Option<u32>;

    fn put(&self) -> Option<u32> {
        self.one().map(|pe| pe.0)
    }

    fn parse(pb: Option<u32>) -> Result<Destination, WireError> {
        let one = pb.map(|pe| Destination::One(PeId(pe)));
        Ok(one.unwrap_or(Destination::Others))
    }
}

record! { Message = Message { id, source, destination, bytes } }

/// Parses a value that must be present.
pub(super) fn required<T: Wire>(pb: Option<T::Pb>, what: &str) -> Result<T, WireError> {
    T::parse(pb.ok_or_else(|| missing(what))?)
}

/// Refuses a value that does not hold, for this reason.
pub(super) fn ensure(holds: bool, fault: impl fmt::Display) -> Result<(), WireError> {
    match holds {
        true => Ok(()),
        false => Err(WireError::malformed(fault)),
    }
}

pub(super) fn missing(what: &str) -> WireError {
    WireError::malformed(format!("{what} is missing"))
}

/// Returns a text, or `None` for an empty one, which is absent.
pub(super) fn non_empty(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

record! {
    Link = Link { latency_ns, ns_per_byte, burst_bytes, setup_ns },
    |link: &Link| {
        let numbers = [link.latency_ns, link.setup_ns, link.ns_per_byte, link.burst_bytes];
        ensure(numbers.iter().all(|x| x.is_finite() && *x >= 0.0), "a link with nonsense numbers")
    }
}
