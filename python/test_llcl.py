"""Tests the module llcl by a read, a write, a reduction and a refusal. scripts/check-python runs it."""
import llcl
import numpy

assert llcl.LLCL_WORD_FAILED == 1 << 63
with llcl.init() as me:
    mine, everybody = me.allocate_shared(8, numpy.float64)
    mine[:] = me.rank + numpy.arange(8) / 8
    me.barrier()
    right = (me.rank + 1) % me.size
    theirs = me.read(right, everybody, numpy.empty(8))
    assert (theirs == right + numpy.arange(8) / 8).all(), theirs
    assert me.read(right, everybody, numpy.empty(2), offset=48).tolist() == [right + 0.75, right + 0.875]
    me.barrier()
    me.write(right, everybody, numpy.full(4, 7.0), offset=32)
    me.barrier()
    assert mine[3:].tolist() == [me.rank + 0.375, 7, 7, 7, 7], mine
    assert me.allreduce(numpy.array([me.rank, 1])).tolist() == [me.size * (me.size - 1) // 2, me.size]
    assert me.allreduce(numpy.array([1.5 * me.rank]), llcl.LLCL_OP_MAX)[0] == 1.5 * (me.size - 1)
    try:
        llcl.check(llcl.lib.llcl_flush(me.handle, me.size))
        raise SystemExit("a peer that does not exist is accepted")
    except llcl.Error as error:
        assert error.status == llcl.LLCL_ERR_INVALID and "peer" in str(error), error
    for wrong in (lambda: me.write(right, everybody, numpy.zeros((4, 4))[:, 1]), lambda: me.read(right, everybody, numpy.frombuffer(b"12345678")),
                  lambda: me.read(right, everybody, numpy.empty(1, object)),
                  lambda: me.allreduce(numpy.ones(1, numpy.dtype(numpy.float64).newbyteorder()))):
        try:
            wrong()
            raise SystemExit("an array that does not fit is accepted")
        except ValueError:
            pass
    try:
        me.allreduce(numpy.ones(1, numpy.int16))
        raise SystemExit("a dtype that has no type is accepted")
    except TypeError as error:
        assert "int16" in str(error) and "float64" in str(error), error
    # cffi frees a callback when its name goes. The callback may run on a thread of the library.
    ended = []
    callback = llcl.ffi.callback("llcl_callback_fn", lambda data, status: ended.append(status))
    into = numpy.empty(8)
    request = llcl.params("llcl_read_params_t", peer=right, source=everybody[right], destination=llcl.local(into), size=64, flags=llcl.LLCL_FLAG_DEFER,
                          on_complete=llcl.lib.llcl_callback(callback, llcl.ffi.NULL))
    llcl.check(llcl.lib.llcl_read_async(me.handle, request))
    llcl.check(llcl.lib.llcl_flush_all(me.handle))
    assert ended == [llcl.LLCL_OK], ended
    me.barrier()
    del mine  # its memory ends with the context
