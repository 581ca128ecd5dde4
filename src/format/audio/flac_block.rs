//! Validates FLAC's metadata blocks (RFC 9639, section 8): their fields must fill them exactly.
//!
//! Their content is not used, but libFLAC refuses files with damaged blocks, and so does this crate.

/// Returns true if the fields of a block of type `kind` fill it; `is_first` is true for the stream's first.
pub(super) fn is_sound(kind: u8, block: &[u8], is_first: bool) -> bool {
    let mut rest = Rest(block);
    let fits = match kind {
        0 => return is_first,
        3 => return block.len().is_multiple_of(18),
        4 => comments(&mut rest),
        5 => cue_sheet(&mut rest),
        6 => picture(&mut rest),
        0x7F => None,
        _ => return true,
    };
    fits.is_some() && rest.0.is_empty()
}

/// The unparsed rest of a block.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take(&mut self, len: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<usize> {
        self.take(1).map(|byte| usize::from(byte[0]))
    }

    fn little(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes) as usize)
    }

    fn big(&mut self) -> Option<usize> {
        let bytes = self.take(4)?.first_chunk()?;
        Some(u32::from_be_bytes(*bytes) as usize)
    }
}

fn comments(rest: &mut Rest<'_>) -> Option<()> {
    let vendor = rest.little()?;
    rest.take(vendor)?;
    for _ in 0..rest.little()? {
        let len = rest.little()?;
        rest.take(len)?;
    }
    Some(())
}

fn cue_sheet(rest: &mut Rest<'_>) -> Option<()> {
    rest.take(395)?;
    for _ in 0..rest.byte()? {
        rest.take(35)?;
        let points = rest.byte()?;
        rest.take(12 * points)?;
    }
    Some(())
}

fn picture(rest: &mut Rest<'_>) -> Option<()> {
    rest.take(4)?;
    for _ in 0..2 {
        let len = rest.big()?;
        rest.take(len)?;
    }
    rest.take(16)?;
    let len = rest.big()?;
    rest.take(len)?;
    Some(())
}
