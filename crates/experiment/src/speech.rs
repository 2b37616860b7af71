//! Audio files to what voice sources play.

use crate::files::Speech;

/// The channels of a WAV file as mu-law bytes. The error continues "`speech.wav` ...".
pub(crate) fn channels(bytes: &[u8]) -> Result<Speech, String> {
    let pcm = trunkline_audio::wav::read_pcm(bytes).map_err(|e| e.to_string())?;
    let channels = pcm.to_mulaw_8k().map_err(|e| e.to_string())?;
    Ok(channels.into())
}
