//! The experiment file: schema, units, validation with positions, expansion of sweeps and repetitions into points, and
//! the building of pure objects from them. Reads no files itself: it is given text, and what it needs beside (speech,
//! traces) through [`Files`].

pub mod model;

pub use model::{
    Axis, Direction, Experiment, Flow, Host, Impairments, Limit, LimitMetric, Link, Loss, Operator, Path, PathStep,
    Point, Progress, Scenario, Source, Supervisor, TcpOptions, Transport, UdpOptions,
};
