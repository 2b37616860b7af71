//! The E-model (ITU-T G.107 06/2015, clause 7). Names are the recommendation's; numbers in brackets are its equations.

use libm::{exp, log2, log10, pow, sqrt};
use trunkline_core::{Duration, Ratio};

use super::codec::Codec;

/// The parameters of a telephone connection, within the ranges of clause 7.7: beyond them R means nothing. `default()` has the
/// values of clause 7.7, with which R is 93.2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EModel {
    /// Send loudness rating, dB.
    pub slr: f64,
    /// Receive loudness rating, dB.
    pub rlr: f64,
    /// Sidetone masking rating, dB.
    pub stmr: f64,
    /// D-value of the telephone at the send side, dB.
    pub ds: f64,
    /// D-value of the telephone at the receive side, dB. The listener sidetone rating is LSTR = STMR + Dr.
    pub dr: f64,
    /// Talker echo loudness rating, dB.
    pub telr: f64,
    /// Weighted echo path loss, dB.
    pub wepl: f64,
    /// T: mean one-way delay of the echo path.
    pub t: Duration,
    /// Tr: round-trip delay in a four-wire loop.
    pub tr: Duration,
    /// Ta: absolute delay, from mouth to ear.
    pub ta: Duration,
    /// Quantisation distortion, in units.
    pub qdu: f64,
    /// Equipment impairment factor.
    pub ie: f64,
    /// Packet-loss robustness factor.
    pub bpl: f64,
    /// Packet-loss probability.
    pub ppl: Ratio,
    /// Burst ratio: 1 of random loss, more of loss in bursts.
    pub burst_r: f64,
    /// Circuit noise referred to the 0 dBr point, dBm0p.
    pub nc: f64,
    /// Noise floor at the receive side, dBmp.
    pub nfor: f64,
    /// Room noise at the send side, dB(A).
    pub ps: f64,
    /// Room noise at the receive side, dB(A).
    pub pr: f64,
    /// Advantage factor: what users forgive for being mobile or hard to reach.
    pub a: f64,
    /// Minimum perceivable delay.
    pub mt: Duration,
    /// Delay sensitivity.
    pub st: f64,
}

/// What R is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Basic signal-to-noise ratio.
    pub ro: f64,
    /// Simultaneous impairment factor: what comes with the signal.
    pub is: f64,
    /// Delay impairment by talker echo, of [`Factors::id`].
    pub idte: f64,
    /// Delay impairment by listener echo, of [`Factors::id`].
    pub idle: f64,
    /// Delay impairment by absolute delay, of [`Factors::id`].
    pub idd: f64,
    /// Effective equipment impairment factor: codec and packet loss.
    pub ie_eff: f64,
    /// Advantage factor.
    pub a: f64,
}

impl Default for EModel {
    fn default() -> EModel {
        EModel {
            slr: 8.0,
            rlr: 2.0,
            stmr: 15.0,
            ds: 3.0,
            dr: 3.0,
            telr: 65.0,
            wepl: 110.0,
            t: Duration::ZERO,
            tr: Duration::ZERO,
            ta: Duration::ZERO,
            qdu: 1.0,
            ie: 0.0,
            bpl: 4.3,
            ppl: Ratio::ZERO,
            burst_r: 1.0,
            nc: -70.0,
            nfor: -64.0,
            ps: 35.0,
            pr: 35.0,
            a: 0.0,
            mt: Duration::from_millis(100),
            st: 1.0,
        }
    }
}

impl EModel {
    /// A call whose two directions are alike, between telephones with the default echo loss: T = Ta, Tr = 2 Ta. A burst
    /// ratio below 1, where the recommendation's range begins, counts as 1.
    pub fn call(codec: &Codec, delay: Duration, ppl: Ratio, burst_r: f64) -> EModel {
        EModel {
            t: delay,
            tr: delay * 2,
            ta: delay,
            ie: codec.ie,
            bpl: codec.bpl,
            ppl,
            burst_r: burst_r.max(1.0),
            ..EModel::default()
        }
    }

    /// The transmission rating factor R (7-1). Connections that nobody would use have less than 0.
    pub fn r(&self) -> f64 {
        let factors = self.factors();
        factors.ro - factors.is - factors.id() - factors.ie_eff + factors.a
    }

    /// The terms of R.
    pub fn factors(&self) -> Factors {
        let no = self.no();
        let ro = 15.0 - 1.5 * (self.slr + no); // (7-2)
        let ist = self.ist();
        Factors {
            ro,
            is: self.iolr(no) + ist + self.iq(ro), // (7-8)
            idte: self.idte(no, ist),
            idle: self.idle(ro),
            idd: self.idd(),
            ie_eff: self.ie_eff(),
            a: self.a,
        }
    }

    fn olr(&self) -> f64 {
        self.slr + self.rlr
    }

    /// The sum of all noise at the 0 dBr point (7-3).
    fn no(&self) -> f64 {
        let power = |level: f64| pow(10.0, level / 10.0);
        let level = self.ps - self.olr() - self.ds - 14.0;
        let nos = self.ps - self.slr - self.ds - 100.0 + 0.004 * level * level; // (7-4)
        let lstr = self.stmr + self.dr;
        let pre = self.pr + 10.0 * log10(1.0 + power(10.0 - lstr)); // (7-6)
        let nor = self.rlr - 121.0 + pre + 0.008 * (pre - 35.0) * (pre - 35.0); // (7-5)
        let nfo = self.nfor + self.rlr; // (7-7)
        10.0 * log10(power(self.nc) + power(nos) + power(nor) + power(nfo))
    }

    /// Too low loudness (7-9).
    fn iolr(&self, no: f64) -> f64 {
        let x = (self.olr() + 0.2 * (64.0 + no - self.rlr)) / 8.0; // (7-10)
        20.0 * (knee(x, 8.0) - x)
    }

    /// Sidetone that is not optimal (7-11).
    fn ist(&self) -> f64 {
        let echo = exp(-self.t.as_millis_f64() / 4.0) * pow(10.0, -self.telr / 10.0);
        let stmr_o = -10.0 * log10(pow(10.0, -self.stmr / 10.0) + echo); // (7-12)
        12.0 * knee((stmr_o - 13.0) / 6.0, 8.0)
            - 28.0 * knee((stmr_o + 1.0) / 19.4, 35.0)
            - 13.0 * knee((stmr_o - 3.0) / 33.0, 13.0)
            + 29.0
    }

    /// Quantisation distortion (7-13 to 7-17).
    fn iq(&self, ro: f64) -> f64 {
        let q = 37.0 - 15.0 * log10(self.qdu);
        let g = 1.07 + 0.258 * q + 0.0602 * q * q;
        let y = (ro - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
        let z = 46.0 / 30.0 - g / 40.0;
        15.0 * log10(1.0 + pow(10.0, y) + pow(10.0, z))
    }

    /// Talker echo (7-19 to 7-24).
    fn idte(&self, no: f64, ist: f64) -> f64 {
        let t = self.t.as_millis_f64();
        // An echo as early as that is sidetone.
        if t < 1.0 {
            return 0.0;
        }
        let mut terv =
            self.telr - 40.0 * log10((1.0 + t / 10.0) / (1.0 + t / 150.0)) + 6.0 * exp(-0.3 * t * t);
        if self.stmr < 9.0 {
            terv += ist / 2.0;
        }
        let re = 80.0 + 2.5 * (terv - 14.0);
        let roe = -1.5 * (no - self.rlr);
        let half = (roe - re) / 2.0;
        let idte = (half + sqrt(half * half + 100.0) - 1.0) * (1.0 - exp(-t));
        if self.stmr > 20.0 { sqrt(idte * idte + ist * ist) } else { idte }
    }

    /// Listener echo (7-25, 7-26).
    fn idle(&self, ro: f64) -> f64 {
        let rle = 10.5 * (self.wepl + 7.0) * pow(self.tr.as_millis_f64() + 1.0, -0.25);
        let half = (ro - rle) / 2.0;
        half + sqrt(half * half + 169.0)
    }

    /// Absolute delay, with perfect echo cancelling (7-27, 7-28).
    fn idd(&self) -> f64 {
        if self.ta <= self.mt {
            return 0.0;
        }
        let x = log2(self.ta.as_millis_f64() / self.mt.as_millis_f64());
        25.0 * (knee(x, 6.0 * self.st) - 3.0 * knee(x / 3.0, 6.0 * self.st) + 2.0)
    }

    /// Codec and packet loss (7-29), in which Ppl is in percent.
    fn ie_eff(&self) -> f64 {
        let ppl = self.ppl.value() * 100.0;
        if ppl == 0.0 {
            return self.ie;
        }
        self.ie + (95.0 - self.ie) * ppl / (ppl / self.burst_r + self.bpl)
    }
}

impl Factors {
    /// Delay impairment factor (7-18).
    pub fn id(&self) -> f64 {
        self.idte + self.idle + self.idd
    }
}

/// The curve of which most impairments are made: 1 for small x, x for large ones, with a knee at 1.
fn knee(x: f64, sharpness: f64) -> f64 {
    pow(1.0 + pow(x, sharpness), 1.0 / sharpness)
}
