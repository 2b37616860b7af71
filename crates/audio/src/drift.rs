//! Clock drift: two sound cards that both say 48 kHz differ by tens of parts per million, so that a playout buffer runs
//! empty or full within minutes. A [`Controller`] watches its [fill](crate::playout::Playout::fill) and steers a
//! [`Resampler`] behind it, so slowly and smoothly that nothing is heard.
//!
//! After Fons Adriaensen, "Controlling adaptive resampling" (Linux Audio Conference 2012): a second-order loop, critically
//! damped, far slower than the network's jitter, behind a low-pass filter; its input is a fill interpolated between
//! blocks, without which the beat of packets and blocks would look like drift.
//!
//! ```
//! use trunkline_audio::drift::{Controller, Quality, Resampler};
//! use trunkline_core::Time;
//!
//! # fn fill(_: Time) -> Option<f64> { Some(960.0) }
//! # fn pull(_: &mut [f32]) {}
//! let mut controller = Controller::new(48_000, 960.0);
//! let mut resampler = Resampler::new(Quality::Sinc, 2, 128, 48_000, 48_000)?;
//! let (mut received, mut played) = (vec![0.0; 2 * resampler.most_needed()], [0.0; 2 * 128]);
//!
//! // When a packet has been inserted:
//! let now = Time::from_nanos(1_000_000);
//! if let Some(fill) = fill(now) {
//!     controller.observe(now, fill);
//! }
//! // When the sound card asks for a block:
//! resampler.steer(controller.correction());
//! let received = &mut received[..2 * resampler.needed()];
//! pull(received);
//! resampler.resample(received, &mut played)?;
//! # Ok::<(), trunkline_audio::drift::ResamplerError>(())
//! ```

mod resampler;
#[cfg(test)]
mod tests;

use trunkline_core::{Duration, Time};

pub use resampler::{Quality, Resampler, ResamplerError};

/// The strongest correction: 1000 ppm. Sound cards stay within 100; the rest fills and empties the buffer.
pub const MOST_CORRECTION: f64 = 1000e-6;

/// The fastest change of the correction, per second: the pitch glides by 0.3 cents in a second.
const SLEW: f64 = 200e-6;

/// The loop's natural frequency in radians per second: drift is followed within a minute.
const OMEGA: f64 = 0.1;

/// What is then left of a step is (1 + 6) e⁻⁶, less than 2 %: the step response of a critically damped loop.
const SETTLED: Duration = Duration::from_secs((6.0 / OMEGA) as u64);

/// The low-pass filter's corner, in radians per second: far enough above the loop not to make it swing.
const FILTER: f64 = 10.0 * OMEGA;

/// A fill that is further off than this, in seconds, is taken to be so far off: it asks for the strongest correction anyway,
/// and a packet that was held up for long says nothing about the clocks.
const FARTHEST: f64 = MOST_CORRECTION / (2.0 * OMEGA);

/// Gaps longer than this teach as much as this one.
const LONGEST_GAP: Duration = Duration::from_secs(1);

/// Steers the speed at which a buffer is emptied so that its fill stays at a target.
#[derive(Clone, Debug)]
pub struct Controller {
    sample_rate: f64,
    target: f64,
    last: Option<Time>,
    /// How far the fill is above the target, low-pass filtered, in seconds.
    filtered: f64,
    /// What the proportional part need not do: the drift itself, once it is known.
    integral: f64,
    /// For how long it has been followed.
    followed: Duration,
    correction: f64,
}

impl Controller {
    /// Keeps the fill of a buffer of `sample_rate` frames per second at `target` frames.
    ///
    /// The fill of a [`Playout`](crate::playout::Playout) just after a packet came is the depth and that packet: this
    /// is the target for it.
    pub fn new(sample_rate: u32, target: f64) -> Controller {
        Controller {
            sample_rate: f64::from(sample_rate.max(1)),
            target: if target.is_finite() { target } else { 0.0 },
            last: None,
            filtered: 0.0,
            integral: 0.0,
            followed: Duration::ZERO,
            correction: 0.0,
        }
    }

    /// Takes a measured fill in frames; one that is not finite is ignored. Returns the [correction](Self::correction).
    pub fn observe(&mut self, now: Time, fill: f64) -> f64 {
        if !fill.is_finite() {
            return self.correction;
        }
        let Some(last) = self.last.replace(now) else { return self.correction };
        let elapsed = now.since(last).min(LONGEST_GAP);
        self.followed += elapsed;
        let elapsed = elapsed.as_secs_f64();
        let error = ((fill - self.target) / self.sample_rate).clamp(-FARTHEST, FARTHEST);
        // Implicit steps: stable however long they are.
        self.filtered += (error - self.filtered) * FILTER * elapsed / (1.0 + FILTER * elapsed);
        let error = self.filtered;
        let wanted = 2.0 * OMEGA * error + self.integral;
        // At its limit the correction says nothing about drift: the integral waits (anti-windup).
        if wanted.abs() < MOST_CORRECTION || wanted * error < 0.0 {
            let integral = self.integral + OMEGA * OMEGA * error * elapsed;
            self.integral = integral.clamp(-MOST_CORRECTION, MOST_CORRECTION);
        }
        let step = (wanted.clamp(-MOST_CORRECTION, MOST_CORRECTION) - self.correction)
            .clamp(-SLEW * elapsed, SLEW * elapsed);
        self.correction += step;
        self.correction
    }

    /// By what share faster than nominally the buffer has to be emptied: 100e-6 is 100 ppm. Never beyond
    /// [`MOST_CORRECTION`] in either direction.
    pub fn correction(&self) -> f64 {
        self.correction
    }

    /// The drift, as a share: the part of the correction that stays. `None` in the first minute, in which it follows the
    /// first packets' jitter as well.
    pub fn drift(&self) -> Option<f64> {
        (self.followed >= SETTLED).then_some(self.integral)
    }

    /// Another target, in frames; what is known of the drift is kept. One that is not finite is ignored.
    pub fn set_target(&mut self, target: f64) {
        if target.is_finite() {
            self.target = target;
        }
    }

    /// The next fill has nothing to do with the last: a stream began anew, and its buffer is as full as it should be. What
    /// is known of the drift is kept.
    pub fn restart(&mut self) {
        (self.last, self.filtered) = (None, 0.0);
    }
}
