//! Wraps symphonia's decoders: caches them per thread, and turns their errors and panics into [`Error::Decode`].
//!
//! Creating a decoder is expensive (Vorbis builds its codebooks), and recordings of one source share their
//! setup, so each thread keeps its last decoders. A decoder that failed is dropped.

use std::cell::RefCell;

use symphonia_bundle_flac::FlacDecoder;
use symphonia_bundle_mp3::MpaDecoder;
use symphonia_codec_vorbis::VorbisDecoder;
use symphonia_core::audio::GenericAudioBufferRef;
use symphonia_core::codecs::audio::well_known::{CODEC_ID_FLAC, CODEC_ID_MP3, CODEC_ID_VORBIS};
use symphonia_core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia_core::packet::PacketRef;
use symphonia_core::units::{Duration, Timestamp};

use crate::caught::caught;
use crate::error::{Error, Result};
use crate::fork::undivided;

/// Maximum of decoders that a thread keeps.
const KEPT: usize = 4;

thread_local! {
    static KEPT_DECODERS: RefCell<Vec<Decoder>> = const { RefCell::new(Vec::new()) };
}

/// The codec of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Flac,
    Mp3,
    Vorbis,
}

/// A decoder with its setup.
pub(super) struct Decoder {
    codec: Codec,
    setup: Box<[u8]>,
    inner: Box<dyn AudioDecoder>,
}

impl Decoder {
    fn new(codec: Codec, setup: &[u8]) -> Result<Decoder> {
        let options = AudioDecoderOptions::default().gapless(false);
        let mut params = AudioCodecParameters::new();
        params.with_extra_data(setup.into());
        let make = || -> symphonia_core::errors::Result<Box<dyn AudioDecoder>> {
            match codec {
                Codec::Flac => FlacDecoder::try_new(params.for_codec(CODEC_ID_FLAC), &options)
                    .map(|decoder| Box::new(decoder) as _),
                Codec::Mp3 => MpaDecoder::try_new(params.for_codec(CODEC_ID_MP3), &options)
                    .map(|decoder| Box::new(decoder) as _),
                Codec::Vorbis => {
                    VorbisDecoder::try_new(params.for_codec(CODEC_ID_VORBIS), &options)
                        .map(|decoder| Box::new(decoder) as _)
                }
            }
        };
        Ok(Decoder {
            codec,
            setup: setup.into(),
            inner: decoded(caught(|| undivided(make)))?,
        })
    }

    /// Decodes one packet.
    pub(super) fn decode(&mut self, packet: &[u8]) -> Result<GenericAudioBufferRef<'_>> {
        let packet = PacketRef::new(0, Timestamp::ZERO, Duration::ZERO, packet);
        // the first use builds tables under locks of its own
        decoded(caught(|| undivided(|| self.inner.decode_ref(&packet))))
    }
}

/// Converts the errors and panics of a decoder.
fn decoded<T>(made: std::result::Result<symphonia_core::errors::Result<T>, Box<str>>) -> Result<T> {
    match made {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(error)) => Err(Error::decode(format!("it is damaged: {error}"))),
        Err(_) => Err(Error::decode(
            "it is damaged in a way that its decoder does not handle",
        )),
    }
}

/// Calls `work` with a new or reset decoder.
///
/// `setup` is the codec's extra data; decoders with equal setup are interchangeable.
///
/// # Errors
///
/// [`Error::Decode`]: the setup is damaged, or the decoder panicked; those of `work`.
pub(super) fn with_decoder(
    codec: Codec,
    setup: &[u8],
    work: impl FnOnce(&mut Decoder) -> Result<()>,
) -> Result<()> {
    let kept = KEPT_DECODERS.with_borrow_mut(|kept| {
        let place = kept
            .iter()
            .position(|one| one.codec == codec && *one.setup == *setup)?;
        Some(kept.remove(place))
    });
    let mut decoder = match kept {
        Some(mut decoder) => {
            decoder.inner.reset();
            decoder
        }
        None => Decoder::new(codec, setup)?,
    };
    work(&mut decoder)?;
    KEPT_DECODERS.with_borrow_mut(|kept| {
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(decoder);
    });
    Ok(())
}
