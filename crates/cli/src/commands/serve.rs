//! `trunkline serve`

use crate::args::Global;
use crate::args::serve::Serve;
use crate::output::{self, Failure};

pub(super) fn serve(_global: &Global, arguments: &Serve) -> Result<u8, Failure> {
    if arguments.openapi {
        let document = trunkline_server::openapi().to_pretty_json();
        let document = document.map_err(|e| Failure::environment(format_args!("the description cannot be made: {e}")))?;
        output::print(document);
        return Ok(output::DONE);
    }
    Err(Failure::environment("this part of the server is not written yet"))
}
