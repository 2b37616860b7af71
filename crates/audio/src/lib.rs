//! Samples in, samples out: G.711 and WAV.
