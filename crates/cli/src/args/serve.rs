//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Serve {
    /// Token management.
    #[command(subcommand)]
    pub command: Option<ServeCommand>,

    /// Address and port to listen on; port 0 lets the system choose
    ///
    /// Any address other than loopback needs TLS, or a proxy that provides it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4782", value_parser = super::parsers::address(4782))]
    pub listen: SocketAddr,

    /// Serve HTTPS with this certificate chain, a PEM file [default: a self-signed certificate, created once; browsers show a
    /// warning]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,

    /// The certificate's private key: a PEM file
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,

    /// Serve HTTPS even without --certificate or on a loopback address
    #[arg(long)]
    pub tls: bool,

    /// A proxy in front of this server provides TLS; its public address, such as `https://trunkline.example.org`
    #[arg(long, value_name = "URL", conflicts_with_all = ["certificate", "tls"])]
    pub behind_proxy: Option<String>,

    /// Loopback only: require no login, so that every user and program of this machine has full access
    #[arg(long)]
    pub no_login: bool,

    /// When to open the page in a browser
    #[arg(long, value_enum, default_value_t = Browser::Auto, value_name = "WHEN")]
    pub browser: Browser,

    /// The folder with the files that experiments name: speech, traces [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    /// Print the API's OpenAPI 3.1 description and exit
    #[arg(long)]
    pub openapi: bool,
}

/// When to open the page in a browser: `$BROWSER`, or the desktop's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Browser {
    /// If the server starts in a terminal on a desktop
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Subcommands that manage tokens.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Create and print a token with which a browser or a program logs in
    ///
    /// Without --name, prints a login link for a browser: it is valid once, for ten minutes, and the browser stays logged in
    /// for 30 days. With --name, prints a token for a program, which sends it as `Authorization: Bearer TOKEN`; it is valid
    /// until revoked.
    Token {
        /// Create a token for a program, with this name
        #[arg(long, value_name = "NAME", conflicts_with = "address")]
        name: Option<String>,

        /// The base address of the link [default: that of the server started last]
        #[arg(long, value_name = "URL")]
        address: Option<String>,
    },

    /// List the tokens of programs and the logged-in browsers
    Tokens,

    /// Revoke a token, or log out a browser
    Revoke {
        /// The name, as listed by `tokens`
        #[arg(value_name = "NAME")]
        name: String,
    },
}
