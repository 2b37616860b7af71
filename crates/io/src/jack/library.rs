//! libjack as it is found at run time: the types and functions of `jack/jack.h` that are used.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::OnceLock;

/// `jack_client_t` and `jack_port_t`: seen only by reference.
#[repr(C)]
pub(super) struct RawClient {
    _opaque: [u8; 0],
}

#[repr(C)]
pub(super) struct RawPort {
    _opaque: [u8; 0],
}

pub(super) type OnFrames = unsafe extern "C" fn(u32, *mut c_void) -> c_int;
pub(super) type OnEvent = unsafe extern "C" fn(*mut c_void) -> c_int;
pub(super) type OnShutdown = unsafe extern "C" fn(*mut c_void);
type OnMessage = unsafe extern "C" fn(*const c_char);

/// `JackOptions`: start no server; a server's name follows.
pub(super) const NO_START_SERVER: c_int = 0x01;
pub(super) const SERVER_NAME: c_int = 0x04;
/// `JackStatus`: no connection to the server.
pub(super) const SERVER_FAILED: c_int = 0x10;
/// `JackPortFlags`.
pub(super) const IS_INPUT: c_ulong = 0x1;
pub(super) const IS_OUTPUT: c_ulong = 0x2;
pub(super) const IS_PHYSICAL: c_ulong = 0x4;
pub(super) const AUDIO: &CStr = c"32 bit float mono audio";

#[cfg(target_os = "macos")]
const NAME: &CStr = c"libjack.0.dylib";
#[cfg(not(target_os = "macos"))]
const NAME: &CStr = c"libjack.so.0";

macro_rules! functions {
    ($($name:ident: $type:ty,)*) => {
        /// The functions of libjack, by name without `jack_`.
        pub(super) struct Library {
            $(pub(super) $name: $type,)*
        }

        impl Library {
            fn load() -> Result<Library, String> {
                // SAFETY: a name that ends in zero. The library is never closed, so that what is found in it stays.
                let library = unsafe { libc::dlopen(NAME.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
                if library.is_null() {
                    return Err(problem());
                }
                Ok(Library {
                    $($name: {
                        let name = concat!("jack_", stringify!($name), "\0");
                        // SAFETY: the library is open and the name ends in zero.
                        let symbol = unsafe { libc::dlsym(library, name.as_ptr().cast()) };
                        if symbol.is_null() {
                            return Err(problem());
                        }
                        // SAFETY: the type is that of the function of this name in jack/jack.h.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(symbol) }
                    },)*
                })
            }
        }
    };
}

functions! {
    client_open: unsafe extern "C" fn(*const c_char, c_int, *mut c_int, ...) -> *mut RawClient,
    client_close: unsafe extern "C" fn(*mut RawClient) -> c_int,
    get_client_name: unsafe extern "C" fn(*mut RawClient) -> *const c_char,
    activate: unsafe extern "C" fn(*mut RawClient) -> c_int,
    get_sample_rate: unsafe extern "C" fn(*mut RawClient) -> u32,
    get_buffer_size: unsafe extern "C" fn(*mut RawClient) -> u32,
    get_time: unsafe extern "C" fn() -> u64,
    get_cycle_times: unsafe extern "C" fn(*const RawClient, *mut u32, *mut u64, *mut u64, *mut f32) -> c_int,
    port_register:
        unsafe extern "C" fn(*mut RawClient, *const c_char, *const c_char, c_ulong, c_ulong) -> *mut RawPort,
    port_get_buffer: unsafe extern "C" fn(*mut RawPort, u32) -> *mut c_void,
    get_ports:
        unsafe extern "C" fn(*mut RawClient, *const c_char, *const c_char, c_ulong) -> *mut *const c_char,
    connect: unsafe extern "C" fn(*mut RawClient, *const c_char, *const c_char) -> c_int,
    free: unsafe extern "C" fn(*mut c_void),
    set_process_callback: unsafe extern "C" fn(*mut RawClient, OnFrames, *mut c_void) -> c_int,
    set_buffer_size_callback: unsafe extern "C" fn(*mut RawClient, OnFrames, *mut c_void) -> c_int,
    set_sample_rate_callback: unsafe extern "C" fn(*mut RawClient, OnFrames, *mut c_void) -> c_int,
    set_xrun_callback: unsafe extern "C" fn(*mut RawClient, OnEvent, *mut c_void) -> c_int,
    on_shutdown: unsafe extern "C" fn(*mut RawClient, OnShutdown, *mut c_void),
    set_error_function: unsafe extern "C" fn(OnMessage),
    set_info_function: unsafe extern "C" fn(OnMessage),
}

/// libjack, loaded at the first call. What it would print is dropped: it says nothing that its answers do not say.
pub(super) fn library() -> Result<&'static Library, &'static str> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let loaded = LIBRARY.get_or_init(|| {
        let library = Library::load()?;
        // SAFETY: the function is there for the whole program and touches nothing.
        unsafe {
            (library.set_error_function)(drop_message);
            (library.set_info_function)(drop_message);
        }
        Ok(library)
    });
    loaded.as_ref().map_err(String::as_str)
}

unsafe extern "C" fn drop_message(_: *const c_char) {}

/// What the dynamic linker says.
fn problem() -> String {
    // SAFETY: the text, if there is one, ends in zero and stays until this thread's next call.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}
