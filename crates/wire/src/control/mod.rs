//! Control of a running wire: its socket, its counters, its view on the terminal.
