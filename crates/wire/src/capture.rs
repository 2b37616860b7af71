//! Captures of what crosses the ends of links.
