//! Agents and controllers over the loopback interface.

mod cut_off;
mod far_end;
mod killed;
mod limits;
mod parts;
mod seen;
mod support;
