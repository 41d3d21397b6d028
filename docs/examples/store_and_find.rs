// Stores two chunks of a prompt and finds them again, in Rust by the C interface. Start `terraced --socket SOCKET --state-dir DIR`
// first, then
//
//   rustc store_and_find.rs -L $(pkg-config --variable=libdir terrace)
//   ./store_and_find SOCKET
//
// A crate would declare the rest of terrace/client/terrace.h likewise, or generate it with bindgen.
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::{null, null_mut};

const OBJECT_BYTES: u64 = 1 << 20;

#[repr(C)]
struct Error {
    code: c_int,
    text: [c_char; 500],
}
#[repr(C)]
struct Pool {
    name: *const c_char,
    object_bytes: u64,
    trailing: u32,
    replicated: c_int,
}
#[repr(C)]
struct SpaceSpec {
    size: usize,
    model: *const c_char,
    revision: *const c_char,
    dtype: *const c_char,
    layout: *const c_char,
    salt: *const c_char,
    pools: *const Pool,
    pool_count: usize, // fields behind the last one that is given may be left out
}
#[repr(C)]
struct Prefix {
    size: usize,
    tokens: *const u32,
    token_count: usize,
}
#[repr(C)]
struct Run {
    offset: u64,
    bytes: u64,
    stride: u64,
    count: u64,
}
#[repr(C)]
struct Found {
    requested_chunks: u32,
    found_chunks: u32,
    found_tokens: u64,
    usable_tokens: u64,
    recompute_chunks: u32,
    lease: *mut c_void,
}

#[link(name = "terrace")]
extern "C" {
    fn terrace_connect(path: *const c_char, name: *const c_char, timeout_ms: i64, connection: *mut *mut c_void, error: *mut Error) -> c_int;
    fn terrace_disconnect(connection: *mut c_void);
    fn terrace_open_space(connection: *mut c_void, spec: *const SpaceSpec, timeout_ms: i64, space: *mut *mut c_void, error: *mut Error) -> c_int;
    fn terrace_space_free(space: *mut c_void);
    fn terrace_memory_create(name: *const c_char, bytes: u64, memory: *mut *mut c_void, error: *mut Error) -> c_int;
    fn terrace_memory_free(memory: *mut c_void);
    fn terrace_register(connection: *mut c_void, memory: *const c_void, timeout_ms: i64, region: *mut *mut c_void, error: *mut Error) -> c_int;
    fn terrace_unregister(connection: *mut c_void, region: *mut c_void, timeout_ms: i64, error: *mut Error) -> c_int;
    fn terrace_store(
        connection: *mut c_void, space: *const c_void, prefix: *const Prefix, first_chunk: u32, chunks: u32, region: *const c_void,
        runs: *const Run, run_count: usize, timeout_ms: i64, stored: *mut c_void, error: *mut Error,
    ) -> c_int;
    fn terrace_lookup(
        connection: *mut c_void, space: *const c_void, prefix: *const Prefix, lease: c_int, timeout_ms: i64, found: *mut Found,
        error: *mut Error,
    ) -> c_int;
    fn terrace_read_lease(
        connection: *mut c_void, lease: *const c_void, first_chunk: u32, chunks: u32, timeout_ms: i64, objects: *mut *mut c_void,
        error: *mut Error,
    ) -> c_int;
    fn terrace_objects_data(objects: *const c_void, index: usize, bytes: *mut usize) -> *const c_void;
    fn terrace_objects_free(objects: *mut c_void);
    fn terrace_release(lease: *mut c_void);
}

fn must(code: c_int, error: &Error) {
    if code != 0 {
        eprintln!("{}", unsafe { CStr::from_ptr(error.text.as_ptr()) }.to_string_lossy());
        std::process::exit(1);
    }
}

fn main() {
    let Some(path) = std::env::args().nth(1) else { std::process::exit(2) };
    let text = |s: &str| CString::new(s).unwrap();
    let (path, name, model, dtype, layout, kv) = (text(&path), text("example"), text("llama"), text("bf16"), text("paged"), text("kv"));
    let mut error = Error { code: 0, text: [0; 500] };
    let (mut daemon, mut space, mut memory, mut region, mut objects) = (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
    unsafe {
        must(terrace_connect(path.as_ptr(), name.as_ptr(), -1, &mut daemon, &mut error), &error);
        let pool = Pool { name: kv.as_ptr(), object_bytes: OBJECT_BYTES, trailing: 0, replicated: 0 };
        let spec = SpaceSpec {
            size: std::mem::size_of::<SpaceSpec>(), model: model.as_ptr(), revision: null(), dtype: dtype.as_ptr(), layout: layout.as_ptr(),
            salt: null(), pools: &pool, pool_count: 1,
        };
        must(terrace_open_space(daemon, &spec, -1, &mut space, &mut error), &error);
        must(terrace_memory_create(kv.as_ptr(), 2 * OBJECT_BYTES, &mut memory, &mut error), &error);
        must(terrace_register(daemon, memory, -1, &mut region, &mut error), &error);

        let tokens = [7u32; 512]; // two chunks of 256 tokens
        let prompt = Prefix { size: std::mem::size_of::<Prefix>(), tokens: tokens.as_ptr(), token_count: tokens.len() };
        let runs = [0, OBJECT_BYTES].map(|offset| Run { offset, bytes: OBJECT_BYTES, stride: 0, count: 1 });
        must(terrace_store(daemon, space, &prompt, 0, 0, region, runs.as_ptr(), runs.len(), -1, null_mut(), &mut error), &error);

        let mut found = std::mem::zeroed::<Found>();
        must(terrace_lookup(daemon, space, &prompt, 1, -1, &mut found, &mut error), &error);
        must(terrace_read_lease(daemon, found.lease, 0, 0, -1, &mut objects, &mut error), &error);
        let mut bytes = 0;
        terrace_objects_data(objects, 0, &mut bytes);
        println!("{} chunks found, {} bytes in the first", found.found_chunks, bytes);

        terrace_objects_free(objects);
        terrace_release(found.lease);
        must(terrace_unregister(daemon, region, -1, &mut error), &error);
        terrace_memory_free(memory);
        terrace_space_free(space);
        terrace_disconnect(daemon);
    }
}
