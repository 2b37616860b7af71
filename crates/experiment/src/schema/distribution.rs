//! Distributions that a size or an interval can be drawn from.

use trunkline_core::schema::Kind;

/// A distribution: `{ kind = "exponential", mean = "10 ms" }`.
pub struct DistributionKind {
    /// Its `kind`.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// Name, type and meaning of its keys; all must be given.
    pub parts: &'static [(&'static str, Part, &'static str)],
}

/// What a key of a distribution takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A value of the parameter's own kind.
    Value,
    /// A share.
    Probability,
    /// A number above 0.
    Shape,
    /// The path of a file.
    File,
}

/// Every distribution that a file can name. A plain value is a constant.
pub const DISTRIBUTIONS: &[DistributionKind] = &[
    DistributionKind {
        name: "constant",
        doc: "Always the same value; a plain value means the same.",
        parts: &[("value", Part::Value, "The value.")],
    },
    DistributionKind {
        name: "exponential",
        doc: "Exponential with a mean, cut at 64 times the mean.",
        parts: &[("mean", Part::Value, "The mean.")],
    },
    DistributionKind {
        name: "uniform",
        doc: "All values between two limits, equally likely.",
        parts: &[("min", Part::Value, "The smallest."), ("max", Part::Value, "The largest.")],
    },
    DistributionKind {
        name: "normal",
        doc: "Normal, truncated at 0: negative values are never drawn, and the others keep their relative \
              frequencies. With a mean of three deviations or more, this hardly matters.",
        parts: &[
            ("mean", Part::Value, "The mean before truncation."),
            ("deviation", Part::Value, "Its standard deviation."),
        ],
    },
    DistributionKind {
        name: "pareto",
        doc: "Bounded Pareto, for heavy tails: the share of the values above x falls as x^(-`shape`), and none \
              exceeds `max`.",
        parts: &[
            ("min", Part::Value, "The smallest, above 0."),
            ("max", Part::Value, "The largest."),
            (
                "shape",
                Part::Shape,
                "A number above 0; the smaller it is, the heavier the tail. Files and pauses of web traffic have 1 \
                 to 1.5.",
            ),
        ],
    },
    DistributionKind {
        name: "bivalue",
        doc: "One of two values (Lamont et al. 1998 section 5.2.2).",
        parts: &[
            ("first", Part::Value, "The value drawn with `probability`."),
            ("second", Part::Value, "The other value."),
            ("probability", Part::Probability, "The probability of `first`."),
        ],
    },
    DistributionKind {
        name: "empirical",
        doc: "A random value from a text file, all equally likely and independent: measured values without their \
              order. The file has the format of that of a `trace`.",
        parts: &[("file", Part::File, "Its path, relative to the experiment file.")],
    },
    DistributionKind {
        name: "trace",
        doc: "The values of a text file in order, repeated from the first: one per line, such as `10 ms` or `80 B`. \
              A bare number is in microseconds or bytes; empty lines and text after a `#` are ignored.",
        parts: &[("file", Part::File, "Its path, relative to the experiment file.")],
    },
];

impl Part {
    /// The kind of value that it is, of a parameter of this kind.
    pub fn kind(self, of: Kind) -> Kind {
        match self {
            Part::Value => of,
            Part::Probability => Kind::Ratio,
            Part::Shape => Kind::Number { min: 0.01, max: 100.0 },
            Part::File => Kind::File,
        }
    }
}

/// The part of that name of any distribution.
pub(crate) fn part(name: &str) -> Option<Part> {
    let parts = DISTRIBUTIONS.iter().flat_map(|kind| kind.parts);
    parts.into_iter().find(|(part, _, _)| *part == name).map(|(_, part, _)| *part)
}
