//! Figures as PNG files, in light colours, with a font of our own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree};
use trunkline_store::StoredRun;

use crate::Error;
use crate::chart::render;
use crate::figures::figures;
use crate::view::View;

/// Pixels per unit of the figure: sharp on dense screens and in print.
const SCALE: f32 = 2.0;

/// Writes every figure of the report as a PNG file into the directory, which is made if it is missing, and says which
/// files those are. Text is drawn in Noto Sans, which is built in: it comes out the same on a machine without fonts.
///
/// # Errors
/// If the directory or a file cannot be written.
pub fn png(
    run: &StoredRun,
    counterpart: Option<&StoredRun>,
    directory: &Path,
) -> Result<Vec<PathBuf>, Error> {
    fs::create_dir_all(directory).map_err(|source| Error::write(directory, source))?;
    let view = View::new(run, counterpart);
    let mut files = Vec::new();
    for figure in figures(&view) {
        let svg = render(&figure.chart, figure.file_frame(), &figure.id);
        let bytes = rasterised(&svg).map_err(|reason| Error::Draw { figure: figure.id.clone(), reason })?;
        let file = directory.join(format!("{}.png", figure.id));
        fs::write(&file, bytes).map_err(|source| Error::write(&file, source))?;
        files.push(file);
    }
    Ok(files)
}

/// A figure that was rendered to stand alone ([`Theme::Print`](crate::chart::Theme::Print)) as a PNG file's bytes.
///
/// # Errors
/// If it cannot be drawn, with the renderer's reason.
pub fn rasterised(svg: &str) -> Result<Vec<u8>, String> {
    let options = Options { font_family: "Noto Sans".to_owned(), fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|e| e.to_string())?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    let mut pixmap = Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or("it has no size")?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|e| e.to_string())
}

fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = Database::new();
        for font in [notosans::REGULAR_TTF, notosans::BOLD_TTF] {
            fonts.load_font_source(Source::Binary(Arc::new(font)));
        }
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}
