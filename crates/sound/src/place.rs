//! Where sound comes from or goes to, as it is written.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::SoundError;

/// Where sound comes from or goes to.
///
/// ```
/// use trunkline_sound::Place;
///
/// assert_eq!("take.wav".parse(), Ok(Place::File("take.wav".into())));
/// assert_eq!("jack:system:capture_*".parse(), Ok(Place::Jack { ports: Some("system:capture_*".to_owned()) }));
/// assert!("tape".parse::<Place>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Place {
    /// `jack`: the physical ports of a JACK server; `jack:PORTS`: the ports of these names, `*` for any text;
    /// `jack:` alone: ports that nobody connects yet.
    Jack {
        /// Which ports.
        ports: Option<String>,
    },
    /// `alsa`: ALSA's default device; `alsa:DEVICE`: the one of this name, as `aplay -L` lists them.
    Alsa {
        /// Which device.
        device: Option<String>,
    },
    /// A path that ends in `.wav` or `.flac`.
    File(PathBuf),
    /// `loop:PATH`: a file that starts again at its end.
    Loop(PathBuf),
    /// `tone`: 440 Hz at half of full scale; `tone:HZ,HZ...`: a frequency for each channel, again from the first where there
    /// are more channels.
    Tone {
        /// The frequencies, at least one; positive.
        hertz: Vec<f64>,
    },
    /// `noise`: white noise at a quarter of full scale, the same each time; `noise:SEED`: another.
    Noise {
        /// What the noise is drawn from.
        seed: u64,
    },
    /// `none`: silence in, nowhere out, at the real pace.
    None,
}

/// What is written is no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` {why}; expected `jack`, `jack:PORTS`, `alsa`, `alsa:DEVICE`, a path that ends in `.wav` or `.flac`, \
     `loop:PATH`, `tone:HZ`, `noise` or `none`"
)]
pub struct PlaceError {
    text: String,
    why: &'static str,
}

/// The places that take sound, as an error lists it.
const SINKS: &str =
    "`jack`, `jack:PORTS`, `alsa`, `alsa:DEVICE`, a path that ends in `.wav` or `.flac`, or `none`";

impl Place {
    /// Reads a place that something is played to.
    ///
    /// # Errors
    /// A sentence if it is no place, or one that only makes sound.
    pub fn playback(text: &str) -> Result<Place, String> {
        match text.parse::<Place>() {
            Ok(place) if place.check_playback().is_err() => {
                Err(format!("nothing can be played to `{text}`; expected {SINKS}"))
            }
            Ok(place) => Ok(place),
            Err(PlaceError { text, why }) => Err(format!("`{text}` {why}; expected {SINKS}")),
        }
    }

    /// Whether something can be played there.
    ///
    /// # Errors
    /// [`SoundError::Wanted`] of a place that only makes sound.
    pub fn check_playback(&self) -> Result<(), SoundError> {
        match self {
            Place::Tone { .. } | Place::Noise { .. } | Place::Loop(_) => {
                Err(SoundError::Wanted(format!("nothing can be played to `{self}`")))
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Place, PlaceError> {
        let wrong = |why| PlaceError { text: text.to_owned(), why };
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        match (kind, rest) {
            ("jack", ports) => Ok(Place::Jack { ports: ports.map(str::to_owned) }),
            ("alsa", Some("")) => Err(wrong("names no ALSA device")),
            ("alsa", device) => Ok(Place::Alsa { device: device.map(str::to_owned) }),
            ("tone", None) => Ok(Place::Tone { hertz: vec![440.0] }),
            ("tone", Some(hertz)) => frequencies(hertz)
                .map(|hertz| Place::Tone { hertz })
                .ok_or_else(|| wrong("needs a positive frequency in hertz")),
            ("noise", None) => Ok(Place::Noise { seed: 0 }),
            ("noise", Some(seed)) => {
                seed.parse().map(|seed| Place::Noise { seed }).map_err(|_| wrong("needs an integer seed"))
            }
            ("none", None) => Ok(Place::None),
            ("loop", Some(path)) if is_audio_file(path) => Ok(Place::Loop(path.into())),
            ("loop", _) => Err(wrong("names no file that ends in `.wav` or `.flac`")),
            _ if is_audio_file(text) => Ok(Place::File(text.into())),
            _ => Err(wrong("is not a source or output of audio")),
        }
    }
}

fn frequencies(text: &str) -> Option<Vec<f64>> {
    let frequency =
        |text: &str| text.trim().parse::<f64>().ok().filter(|hertz| hertz.is_finite() && *hertz > 0.0);
    text.split(',').map(frequency).collect()
}

fn is_audio_file(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.ends_with(".wav") || path.ends_with(".flac")
}

impl fmt::Display for Place {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Jack { ports: None } => f.write_str("jack"),
            Place::Jack { ports: Some(ports) } => write!(f, "jack:{ports}"),
            Place::Alsa { device: None } => f.write_str("alsa"),
            Place::Alsa { device: Some(device) } => write!(f, "alsa:{device}"),
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Loop(path) => write!(f, "loop:{}", path.display()),
            Place::Tone { hertz } => {
                let hertz: Vec<String> = hertz.iter().map(f64::to_string).collect();
                write!(f, "tone:{}", hertz.join(","))
            }
            Place::Noise { seed } => write!(f, "noise:{seed}"),
            Place::None => f.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in [
            "jack",
            "jack:",
            "jack:system:capture_*",
            "alsa",
            "alsa:hw:1",
            "take.wav",
            "dir/Take 2.FLAC",
            "loop:take.flac",
            "tone:440",
            "tone:440,659.26",
            "noise:7",
            "none",
        ] {
            assert_eq!(place(text).to_string(), text);
        }
        assert_eq!(place("tone"), place("tone:440"));
        assert_eq!(place("noise"), place("noise:0"));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_accepted() {
        for (text, why) in [
            ("tape", "is not a source or output"),
            ("", "is not a source or output"),
            ("take.mp3", "is not a source or output"),
            ("jackk:system", "is not a source or output"),
            ("none:1", "is not a source or output"),
            ("tone:", "needs a positive frequency"),
            ("tone:-3", "needs a positive frequency"),
            ("tone:inf", "needs a positive frequency"),
            ("tone:440,x", "needs a positive frequency"),
            ("noise:loud", "needs an integer seed"),
            ("alsa:", "names no ALSA device"),
            ("loop:take", "names no file"),
            ("loop", "names no file"),
        ] {
            let error = text.parse::<Place>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` ")), "{error}");
            assert!(error.contains(why), "{error}");
            assert!(error.contains("`loop:PATH`, `tone:HZ`"), "{error}");
        }
    }
}
