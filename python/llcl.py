"""libllcl for tests and prototypes: all functions, structs and constants of llcl.h, and numpy arrays
as memory.

    import llcl, numpy
    me = llcl.init()
    mine, all = me.allocate_shared(8, numpy.float64)
    mine[:] = me.rank; me.barrier()
    theirs = me.read((me.rank + 1) % me.size, all, numpy.empty(8))

Start the program by llcl-run. `llcl.lib.llcl_flush(...)` calls the library as C does, and `llcl.ffi`
makes its structs. `llcl.check` raises an exception for every status but LLCL_OK and LLCL_DONE.
The import reads the installed header by cffi, so no file is generated. PYLLCL_HEADER and
PYLLCL_LIBRARY name the header and the library if they do not lie in the folders include and lib of
the prefix that contains this file.
"""
import os
import re

import cffi
import numpy

ffi = cffi.FFI()


def _find(variable, *places):
    named = os.environ.get(variable)
    for place in (named,) if named else places:
        if os.path.exists(place):
            return place
    raise ImportError(f"none of {places} is there; {variable} may name it")


def _declarations(header):
    """The part of llcl.h that cffi can read: declarations, and constants that are numbers."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S).replace("\\\n", " ")
    constants = re.findall(r"^#define (LLCL_\w+) \(?(-?\d+)u?\)?[ \t]*$", text, flags=re.M)
    text = re.sub(r'^#.*$|^extern "C" \{$|^\}$', "", text, flags=re.M)
    bits = re.findall(r"^#define (LLCL_\w+) \(\(uint64_t\)(\d+) << (\d+)\)[ \t]*$", header, flags=re.M)
    return text, {name: int(value) for name, value in constants} | {name: int(value) << int(shift) for name, value, shift in bits}


_here = os.path.dirname(os.path.abspath(__file__))
_up = [os.path.join(_here, *[".."] * n) for n in range(1, 5)]
with open(_find("PYLLCL_HEADER", *[os.path.join(up, "include", "llcl.h") for up in _up])) as _file:
    _text, constants = _declarations(_file.read())
ffi.cdef(_text)
lib = ffi.dlopen(_find("PYLLCL_LIBRARY", *[os.path.join(up, "lib", "libllcl.so") for up in _up]))
globals().update(constants)


class Error(Exception):
    """The exception of check(), with the `status` and the library's message."""

    def __init__(self, status):
        said = lib.llcl_last_error() if status < 0 else lib.llcl_status_string(status)
        super().__init__(ffi.string(said).decode())
        self.status = status


def check(status):
    if status not in (constants["LLCL_OK"], constants["LLCL_DONE"]):
        raise Error(status)


def params(struct, **fields):
    """Makes a struct of llcl.h: `params("llcl_read_params_t", peer=1)`. Sets struct_size; other fields that
    are not named are 0."""
    made = ffi.new(struct + " *", fields)
    if hasattr(made, "struct_size") and not made.struct_size:
        made.struct_size = ffi.sizeof(struct)
    return made


def local(array):
    """The address of a contiguous array, as the local buffer of an operation."""
    if not array.flags.c_contiguous:
        raise ValueError("the array is not contiguous: copy it first")
    if array.dtype.hasobject:
        raise ValueError("the array has Python objects: their addresses mean nothing at another rank")
    return lib.llcl_local_address(ffi.cast("void *", array.ctypes.data))


class Context:
    """A rank's place in its world. It ends by close(), or at the end of a `with`; both are collective. An exception that
    leaves the `with` does not end it, except sys.exit() with success: close() would wait for the other ranks, which may
    wait for this one. If nobody catches the exception, the process ends, and llcl-run ends the job."""

    def __init__(self, config=None):
        made = ffi.new("llcl_context_t **")
        check(lib.llcl_init(ffi.NULL if config is None else config, made))
        self.handle = made[0]
        self.rank, self.size = lib.llcl_rank(self.handle), lib.llcl_size(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, _, exception, *__):
        if exception is None or isinstance(exception, SystemExit) and not exception.code:
            self.close()

    def close(self):
        handle, self.handle = self.handle, ffi.NULL
        if handle != ffi.NULL:
            check(lib.llcl_finalize(handle))

    def barrier(self):
        check(lib.llcl_barrier(self.handle))

    def allocate_shared(self, count, dtype=numpy.uint8):
        """Allocates a region at every rank. Returns this rank's memory as an array, which is valid until
        close(), and the remote addresses of all ranks' regions."""
        region, places = ffi.new("llcl_region_t **"), ffi.new("llcl_remote_t[]", self.size)
        size = count * numpy.dtype(dtype).itemsize
        check(lib.llcl_region_allocate_shared(self.handle, size, region, places))
        memory = ffi.buffer(lib.llcl_region_address(region[0]), size)
        return numpy.frombuffer(memory, dtype=dtype), places

    def read(self, peer, places, array, offset=0):
        """Fills the array from a peer's region, beginning at byte `offset`, and returns the array."""
        if not array.flags.writeable:
            raise ValueError("the array is read-only")
        check(lib.llcl_read(self.handle, params("llcl_read_params_t", peer=peer, source=lib.llcl_at(places[peer], offset),
                                                destination=local(array), size=array.nbytes)))
        return array

    def write(self, peer, places, array, offset=0):
        """Writes the array into a peer's region, beginning at byte `offset`."""
        check(lib.llcl_write(self.handle, params("llcl_write_params_t", peer=peer, source=local(array), size=array.nbytes,
                                                 destination=lib.llcl_at(places[peer], offset))))

    def allreduce(self, array, op=None):
        """Returns the sum of all ranks' arrays, element by element, or their combination by another LLCL_OP_*."""
        types = {"int32": "I32", "uint32": "U32", "int64": "I64", "uint64": "U64", "float32": "F32", "float64": "F64"}
        if array.dtype.name not in types:
            raise TypeError(f"the array's dtype is {array.dtype.name}, expected one of {', '.join(types)}")
        if not array.dtype.isnative:
            raise ValueError("the array has another byte order than this machine: convert it first")
        result, team = numpy.empty_like(array), ffi.new("llcl_team_t **")
        check(lib.llcl_team_world(self.handle, team))
        check(lib.llcl_allreduce(params("llcl_coll_params_t", team=team[0], send=local(array), receive=local(result), count=array.size,
                                        type=constants["LLCL_TYPE_" + types[array.dtype.name]], op=constants["LLCL_OP_ADD"] if op is None else op)))
        return result


def init(config=None):
    return Context(config)
