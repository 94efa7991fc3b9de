//! Reads the outer messages of a Perfetto trace byte by byte: they may be longer than fits in memory, or cut off.

use std::io::{BufRead, Read};

use crate::source::FileHead;

/// The longest packet that is read, in bytes.
pub(super) const PACKET: u64 = 256 << 20;

/// Returns true if the data begin with a plane of an XSpace: a message with a name such as `/device:GPU:0`.
pub(crate) fn is_xspace(bytes: &[u8]) -> bool {
    let Some(mut plane) = bytes.strip_prefix(&[0x0a]) else {
        return false;
    };
    // A plane has a length, a number and a name; the number may be absent.
    if varint(&mut plane, &mut 0).is_none() {
        return false;
    }
    if let Some(mut rest) = plane.strip_prefix(&[0x08]) {
        varint(&mut rest, &mut 0);
        plane = rest;
    }
    let name = plane.strip_prefix(&[0x12]).and_then(|rest| rest.get(1..));
    let planes = ["/host:", "/device:", "Task Environment"];
    name.is_some_and(|name| {
        planes
            .iter()
            .any(|plane| name.starts_with(plane.as_bytes()))
    })
}

/// Returns true if the data begin with packets of a trace.
pub(crate) fn recognises(head: &FileHead) -> bool {
    if is_xspace(&head.bytes) {
        return false;
    }
    let mut bytes = &head.bytes[..];
    let mut packets = 0;
    while packets < 3 && bytes.first() == Some(&0x0a) {
        let mut rest = &bytes[1..];
        let Some(length) = varint(&mut rest, &mut 0) else {
            return packets > 0;
        };
        let Some(body) = rest.get(..length as usize) else {
            return packets > 0 || are_fields(rest, true);
        };
        if !are_fields(body, false) {
            return false;
        }
        packets += 1;
        bytes = &rest[length as usize..];
    }
    packets > 0 && (packets == 3 || bytes.is_empty() || bytes[0] == 0x0a)
}

/// Returns true if bytes are fields of a message. With `is_cut`, the last field may be incomplete.
fn are_fields(mut bytes: &[u8], is_cut: bool) -> bool {
    while !bytes.is_empty() {
        let Some(key) = varint(&mut bytes, &mut 0) else {
            return is_cut;
        };
        let length = match key & 7 {
            0 => varint(&mut bytes, &mut 0).map(|_| 0),
            1 => Some(8),
            2 => varint(&mut bytes, &mut 0),
            5 => Some(4),
            _ => return false,
        };
        let Some(length) = length else { return is_cut };
        if key >> 3 == 0 || key >> 3 > 100_000 {
            return false;
        }
        match bytes.get(length as usize..) {
            Some(rest) => bytes = rest,
            None => return is_cut,
        }
    }
    true
}

/// What follows in the data of a trace.
pub(super) enum Next {
    /// A packet, with its bytes.
    Packet(Vec<u8>),
    /// The end of the data, between two packets.
    End,
    /// Bytes that are not a packet.
    Noise,
}

/// Reads the next packet of a trace; other fields at the top are skipped. `at` counts the bytes read. `None` if the data end inside a
/// packet.
pub(super) fn next_packet(data: &mut impl BufRead, at: &mut u64) -> Option<Next> {
    loop {
        if data.fill_buf().is_ok_and(<[u8]>::is_empty) {
            return Some(Next::End);
        }
        let key = varint(data, at)?;
        let length = match (key >> 3, key & 7) {
            (0, _) => return Some(Next::Noise),
            (_, 0) => varint(data, at).map(|_| 0)?,
            (_, 1) => 8,
            (_, 5) => 4,
            (_, 2) => varint(data, at)?,
            _ => return Some(Next::Noise),
        };
        if length > PACKET {
            return Some(Next::Noise);
        }
        let mut bytes = Vec::new();
        let read = data.take(length).read_to_end(&mut bytes).unwrap_or(0) as u64;
        *at += read;
        if read < length {
            return None;
        }
        if key == 0x0a {
            return Some(Next::Packet(bytes));
        }
    }
}

/// Reads a number of variable length; `None` if it is cut off or too long. `at` counts the bytes read.
fn varint(data: &mut impl Read, at: &mut u64) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        data.read_exact(&mut byte).ok()?;
        *at += 1;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
