//! Where WebSocket frames begin and end, and whether they carry data.
//!
//! A relayed connection is never decoded: payloads pass as they are. Only the frame headers are
//! read (RFC 6455 §5.2), to tell data from pings and to know when a close frame of the gateway's
//! own can be put between two frames.

/// What a run of bytes held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Frames of data that began in it: text, binary and their continuations.
    pub data_frames: u32,
    /// Payload bytes of data frames.
    pub data_bytes: u64,
    /// Pings and pongs that began in it.
    pub control_frames: u32,
    /// Whether a close frame began in it.
    pub close: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Data,
    Control,
    Close,
}

impl Opcode {
    const fn of(first: u8) -> Self {
        match first & 0x0f {
            0x8 => Self::Close,
            0x9..=0xf => Self::Control,
            _ => Self::Data,
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Reading the first two bytes of a header; the first one, once it is here.
    Head(Option<u8>),
    /// Reading the rest of a header.
    Length { opcode: Opcode, left: u8, masked: bool, length: u64 },
    /// Skipping the mask.
    Mask { opcode: Opcode, left: u8, length: u64 },
    /// Inside a payload.
    Payload { opcode: Opcode, left: u64 },
}

/// Follows one direction of a relayed connection.
#[derive(Debug, Clone, Copy)]
pub struct FrameScanner {
    state: State,
}

impl Default for FrameScanner {
    fn default() -> Self {
        Self { state: State::Head(None) }
    }
}

impl FrameScanner {
    /// Whether the bytes so far end exactly at the end of a frame.
    #[must_use]
    pub const fn at_boundary(&self) -> bool {
        matches!(self.state, State::Head(None))
    }

    /// Reads on. Its cost depends on the number of frames, not on the number of bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Seen {
        let mut seen = Seen::default();
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.state {
                State::Head(None) => {
                    self.state = State::Head(Some(byte));
                    bytes = rest;
                }
                State::Head(Some(first)) => {
                    let opcode = Opcode::of(first);
                    match opcode {
                        Opcode::Data => seen.data_frames += 1,
                        Opcode::Control => seen.control_frames += 1,
                        Opcode::Close => seen.close = true,
                    }
                    let masked = byte & 0x80 != 0;
                    self.state = match byte & 0x7f {
                        126 => State::Length { opcode, left: 2, masked, length: 0 },
                        127 => State::Length { opcode, left: 8, masked, length: 0 },
                        short => after_length(opcode, masked, u64::from(short)),
                    };
                    bytes = rest;
                }
                State::Length { opcode, left, masked, length } => {
                    let length = (length << 8) | u64::from(byte);
                    self.state = if left > 1 {
                        State::Length { opcode, left: left - 1, masked, length }
                    } else {
                        after_length(opcode, masked, length)
                    };
                    bytes = rest;
                }
                State::Mask { opcode, left, length } => {
                    self.state = if left > 1 {
                        State::Mask { opcode, left: left - 1, length }
                    } else {
                        after_mask(opcode, length)
                    };
                    bytes = rest;
                }
                State::Payload { opcode, left } => {
                    let here = left.min(bytes.len() as u64);
                    if opcode == Opcode::Data {
                        seen.data_bytes += here;
                    }
                    self.state = after_mask(opcode, left - here);
                    // `here` is at most the slice's own length.
                    bytes = &bytes[usize::try_from(here).unwrap_or(bytes.len())..];
                }
            }
        }
        seen
    }
}

const fn after_length(opcode: Opcode, masked: bool, length: u64) -> State {
    if masked { State::Mask { opcode, left: 4, length } } else { after_mask(opcode, length) }
}

const fn after_mask(opcode: Opcode, length: u64) -> State {
    if length == 0 { State::Head(None) } else { State::Payload { opcode, left: length } }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(opcode: u8, masked: bool, length: usize) -> Vec<u8> {
        let mut bytes = vec![0x80 | opcode];
        let mask = if masked { 0x80 } else { 0 };
        match length {
            0..=125 => bytes.push(mask | u8::try_from(length).unwrap()),
            126..=0xffff => {
                bytes.push(mask | 126);
                bytes.extend_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
            }
            _ => {
                bytes.push(mask | 127);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        if masked {
            bytes.extend_from_slice(&[1, 2, 3, 4]);
        }
        bytes.extend(std::iter::repeat_n(0x81, length));
        bytes
    }

    fn total(parts: impl Iterator<Item = Seen>) -> Seen {
        parts.fold(Seen::default(), |a, b| Seen {
            data_frames: a.data_frames + b.data_frames,
            data_bytes: a.data_bytes + b.data_bytes,
            control_frames: a.control_frames + b.control_frames,
            close: a.close || b.close,
        })
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_the_same_frames_are_seen(
            frames in prop::collection::vec(
                (prop::sample::select(vec![0u8, 1, 2, 8, 9, 10]), any::<bool>(),
                 prop::sample::select(vec![0usize, 1, 125, 126, 127, 300, 65_535, 65_536])),
                1..8),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut bytes = Vec::new();
            let mut expected = Seen::default();
            for (opcode, masked, length) in &frames {
                bytes.extend(frame(*opcode, *masked, *length));
                match opcode {
                    8 => expected.close = true,
                    9 | 10 => expected.control_frames += 1,
                    _ => {
                        expected.data_frames += 1;
                        expected.data_bytes += *length as u64;
                    }
                }
            }
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let mut scanner = FrameScanner::default();
            let seen = total(at.windows(2).map(|pair| scanner.feed(&bytes[pair[0]..pair[1]])));
            prop_assert_eq!(seen, expected);
            prop_assert!(scanner.at_boundary());
        }

        #[test]
        fn a_boundary_is_seen_only_at_the_end_of_a_frame(
            masked in any::<bool>(), length in 0usize..400, cut in any::<prop::sample::Index>(),
        ) {
            let bytes = frame(2, masked, length);
            let cut = cut.index(bytes.len());
            let mut scanner = FrameScanner::default();
            scanner.feed(&bytes[..cut]);
            prop_assert_eq!(scanner.at_boundary(), cut == 0);
        }

        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
            let _ = FrameScanner::default().feed(&bytes);
        }
    }

    #[test]
    fn a_frame_that_claims_an_absurd_length_costs_nothing() {
        let mut bytes = vec![0x82, 127];
        bytes.extend_from_slice(&(1u64 << 62).to_be_bytes());
        bytes.extend_from_slice(b"abc");
        let mut scanner = FrameScanner::default();
        assert_eq!(scanner.feed(&bytes).data_bytes, 3);
        assert!(!scanner.at_boundary());
    }
}
