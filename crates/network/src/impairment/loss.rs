//! Loss models.

use trunkline_core::custom::Draws;
use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};
use trunkline_core::{Custom, Duration, Stream, Time};

use super::Loss;

/// A loss model that an experiment file can name.
pub struct LossKind {
    /// The word in the file.
    pub name: &'static str,
    /// One paragraph: what it does and where it is defined.
    pub doc: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes the model from its values.
    pub build: fn(&Values) -> Loss,
}

const fn share(name: &'static str, default: Preset, doc: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Ratio, default, doc }
}

pub(super) const BERNOULLI: LossKind = LossKind {
    name: "bernoulli",
    doc: "Each packet is lost with the same probability, independently of the others.",
    parameters: &[share("probability", Preset::Required, "The probability that a packet is lost.")],
    build: |values| Loss::Bernoulli(values.ratio("probability")),
};

const LOSS_GOOD: Parameter =
    share("loss-good", Preset::Text("0 %"), "The share of packets lost in the good state.");
const LOSS_BAD: Parameter =
    share("loss-bad", Preset::Text("100 %"), "The share of packets lost in the bad state.");

pub(super) const GILBERT_ELLIOTT: LossKind = LossKind {
    name: "gilbert-elliott",
    doc: "Bursty loss: a Markov chain with a good and a bad state, with one step per packet (Gilbert 1960, \
          Elliott 1963). By default, no packet is lost in the good state and every packet is lost in the \
          bad state. The mean burst length is then 1/`to-good` packets, and the loss ratio is \
          `to-bad`/(`to-bad` + `to-good`).",
    parameters: &[
        share(
            "to-bad",
            Preset::Required,
            "The probability of going from the good to the bad state at a packet.",
        ),
        share(
            "to-good",
            Preset::Required,
            "The probability of going from the bad to the good state at a packet.",
        ),
        LOSS_GOOD,
        LOSS_BAD,
    ],
    build: |values| Loss::GilbertElliott {
        to_bad: values.ratio("to-bad"),
        to_good: values.ratio("to-good"),
        loss_good: values.ratio("loss-good"),
        loss_bad: values.ratio("loss-bad"),
    },
};

const fn lasting(name: &'static str, doc: &'static str) -> Parameter {
    let kind = Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(86_400) };
    Parameter { name, kind, default: Preset::Required, doc }
}

pub(super) const BURSTS: LossKind = LossKind {
    name: "bursts",
    doc: "Bursts of loss in time: a Markov chain in continuous time with a good and a bad state, whose durations are \
          exponential. Bursts last as long whatever the packet rate, unlike those of `gilbert-elliott`. By default, no \
          packet is lost in the good state and every packet is lost in the bad state. The share of time in the bad \
          state is `bad`/(`good` + `bad`).",
    parameters: &[
        lasting("good", "The mean duration of the good state."),
        lasting("bad", "The mean duration of the bad state."),
        LOSS_GOOD,
        LOSS_BAD,
    ],
    build: |values| Loss::Bursts {
        good: values.duration("good"),
        bad: values.duration("bad"),
        loss_good: values.ratio("loss-good"),
        loss_bad: values.ratio("loss-bad"),
    },
};

pub(super) const CUSTOM: LossKind = LossKind {
    name: "custom",
    doc: "Losses by a function of the program that runs the experiment, only in `sim`: see `Experiment.loss` of the Python \
          package.",
    parameters: &[],
    build: |_| Loss::Custom(Custom::default()),
};

/// A loss model at work: its stream and its state.
#[derive(Debug)]
pub struct LossModel {
    loss: Loss,
    bad: bool,
    /// The time of the last packet that a model in time has seen.
    at: Option<Time>,
    /// The draws of a function, from the first packet on.
    draws: Option<Draws<bool>>,
    stream: Stream,
}

impl LossModel {
    /// Starts a model with a stream of its own, in the good state.
    pub fn new(loss: Loss, stream: Stream) -> LossModel {
        LossModel { loss, bad: false, at: None, draws: None, stream }
    }

    /// Takes another model, in the good state if it is of another kind; the stream goes on where it is.
    pub fn change(&mut self, loss: Loss) {
        if core::mem::discriminant(&self.loss) != core::mem::discriminant(&loss) {
            (self.bad, self.at, self.draws) = (false, None, None);
        }
        self.loss = loss;
    }

    /// Returns true if the packet at `now`, which comes after the ones before, is lost. Always makes the same number of
    /// draws, so that two strengths of one model stay comparable packet by packet.
    pub fn loses(&mut self, now: Time) -> bool {
        match &self.loss {
            Loss::None => false,
            Loss::Custom(custom) => {
                let draws = self.draws.get_or_insert_with(|| custom.draws(self.stream.bits()));
                draws.next().unwrap_or(false)
            }
            Loss::Bernoulli(probability) => self.stream.chance(probability.value()),
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let change = if self.bad { to_good } else { to_bad };
                self.bad ^= self.stream.chance(change.value());
                let loss = if self.bad { loss_bad } else { loss_good };
                self.stream.chance(loss.value())
            }
            Loss::Bursts { good, bad, loss_good, loss_bad } => {
                let is_bad = bad_after(*good, *bad, self.at.map(|at| (self.bad, now.since(at))));
                self.at = self.at.max(Some(now));
                self.bad = self.stream.chance(is_bad);
                let loss = if self.bad { loss_bad } else { loss_good };
                self.stream.chance(loss.value())
            }
        }
    }
}

/// The probability that a chain with these mean durations is in its bad state, if a time ago it was in the bad one or not:
/// the transition probability of a two-state Markov chain in continuous time, whatever happened in between.
fn bad_after(good: Duration, bad: Duration, before: Option<(bool, Duration)>) -> f64 {
    let (good, bad) = (good.as_nanos() as f64, bad.as_nanos() as f64);
    let share = bad / (good + bad);
    let Some((was_bad, ago)) = before else { return share };
    let memory = libm::exp(-(ago.as_nanos() as f64) * (1.0 / good + 1.0 / bad));
    share + (f64::from(u8::from(was_bad)) - share) * memory
}
