mod codecs;
mod intervals;
mod sessions;
mod statistics;
