//! Foreign protocol engines behind Trunkline's traits.
