//! Tables and figures: one self-contained HTML file, SVG, PNG and CSV.
