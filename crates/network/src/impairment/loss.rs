//! Loss models.

use trunkline_core::Stream;
use trunkline_core::schema::{Default as Preset, Kind, Parameter, Values};

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
        share("loss-good", Preset::Text("0 %"), "The share of packets lost in the good state."),
        share("loss-bad", Preset::Text("100 %"), "The share of packets lost in the bad state."),
    ],
    build: |values| Loss::GilbertElliott {
        to_bad: values.ratio("to-bad"),
        to_good: values.ratio("to-good"),
        loss_good: values.ratio("loss-good"),
        loss_bad: values.ratio("loss-bad"),
    },
};

/// A loss model at work: its stream and its state.
#[derive(Clone, Debug)]
pub struct LossModel {
    loss: Loss,
    bad: bool,
    stream: Stream,
}

impl LossModel {
    /// Starts a model with a stream of its own, in the good state.
    pub fn new(loss: Loss, stream: Stream) -> LossModel {
        LossModel { loss, bad: false, stream }
    }

    /// Takes another model, in the good state if it is of another kind; the stream goes on where it is.
    pub fn change(&mut self, loss: Loss) {
        self.bad &= core::mem::discriminant(&self.loss) == core::mem::discriminant(&loss);
        self.loss = loss;
    }

    /// Whether the next packet is lost. Always makes the same number of draws, so that two strengths of one model
    /// stay comparable packet by packet.
    pub fn loses(&mut self) -> bool {
        match self.loss {
            Loss::None => false,
            Loss::Bernoulli(probability) => self.stream.chance(probability.value()),
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let change = if self.bad { to_good } else { to_bad };
                self.bad ^= self.stream.chance(change.value());
                let loss = if self.bad { loss_bad } else { loss_good };
                self.stream.chance(loss.value())
            }
        }
    }
}
