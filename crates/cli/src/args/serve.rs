//! Arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Serve {
    /// Who may log in.
    #[command(subcommand)]
    pub command: Option<ServeCommand>,

    /// Address and port to listen on; port 0 lets the system choose
    ///
    /// An address other than loopback needs TLS, or a proxy that has it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4782")]
    pub listen: SocketAddr,

    /// Serve HTTPS with this certificate: a PEM file, with those that signed it behind it [default: one that signs itself,
    /// made once; browsers warn of it]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,

    /// The certificate's private key: a PEM file
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,

    /// Serve HTTPS: also without --certificate, and on a loopback address
    #[arg(long)]
    pub tls: bool,

    /// A proxy in front of this server has TLS; browsers know it under this address: `https://trunkline.example.org`
    #[arg(long, value_name = "URL", conflicts_with_all = ["certificate", "tls"])]
    pub behind_proxy: Option<String>,

    /// Loopback only: require no login, so that every user and program of this machine has full access
    #[arg(long)]
    pub no_login: bool,

    /// When to open the page in a browser
    #[arg(long, value_enum, default_value_t = Browser::Auto, value_name = "WHEN")]
    pub browser: Browser,

    /// Where the files are that experiments name: speech, traces [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    /// Print the API's description, OpenAPI 3.1, and do nothing else
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

/// Who may log in.
#[derive(Debug, Subcommand)]
pub enum ServeCommand {
    /// Make a token and print it; what a browser or a program needs to log in
    ///
    /// Without --name it is a link for a browser: it works once, within ten minutes, and the browser stays logged in for 30
    /// days. With --name it is for a program, which sends it as `Authorization: Bearer TOKEN`, until it is revoked.
    Token {
        /// A token for a program, with this name
        #[arg(long, value_name = "NAME", conflicts_with = "address")]
        name: Option<String>,

        /// The address that the link begins with [default: that of the server which was started last]
        #[arg(long, value_name = "URL")]
        address: Option<String>,
    },

    /// List the tokens of programs and the browsers that are logged in
    Tokens,

    /// Make a token useless, or log a browser out: by its name
    Revoke {
        /// As `tokens` lists it
        #[arg(value_name = "NAME")]
        name: String,
    },
}
