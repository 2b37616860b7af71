//! Distributions that a size or an interval can be drawn from.

/// A distribution: `{ kind = "exponential", mean = "10 ms" }`.
pub(crate) struct DistributionKind {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    /// Name, type and meaning of its keys; all must be given.
    pub(crate) parts: &'static [(&'static str, Part, &'static str)],
}

/// What a key of a distribution takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A value of the parameter's own kind.
    Value,
    /// A share.
    Probability,
    /// The path of a file.
    File,
}

/// Every distribution that a file can name. A plain value is a constant.
pub(crate) const DISTRIBUTIONS: &[DistributionKind] = &[
    DistributionKind {
        name: "constant",
        doc: "Always the same; a plain value says the same.",
        parts: &[("value", Part::Value, "The value.")],
    },
    DistributionKind {
        name: "exponential",
        doc: "Exponential with a mean, cut at 64 times the mean.",
        parts: &[("mean", Part::Value, "The mean.")],
    },
    DistributionKind {
        name: "uniform",
        doc: "Every value between two alike.",
        parts: &[("min", Part::Value, "The smallest."), ("max", Part::Value, "The largest.")],
    },
    DistributionKind {
        name: "bivalue",
        doc: "One of two values (Lamont et al. 1998 section 5.2.2).",
        parts: &[
            ("first", Part::Value, "Drawn with the probability."),
            ("second", Part::Value, "Drawn otherwise."),
            ("probability", Part::Probability, "The probability of `first`."),
        ],
    },
    DistributionKind {
        name: "trace",
        doc: "The values of a text file in their order, then again from the first: one per line, such as `10 ms` or \
              `80 B`. A bare number is in microseconds or bytes; empty lines and what follows a `#` do not count.",
        parts: &[("file", Part::File, "Its path, relative to the experiment file.")],
    },
];
