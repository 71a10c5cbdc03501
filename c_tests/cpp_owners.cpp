/* llcl.hpp: an exception that destroys a context's owner while another rank waits for this one
 * ends the job, and no rank waits for ever. An owner that is destroyed in order ends its context,
 * also one that was made while an exception is under way.
 * ranks: 2
 * modes: auto
 * exit: 7
 */
#include "cpp_check.h"
#include <llcl.hpp>

#include <cstdio>
#include <cstdlib>

static llcl_context_t *duplicate(const llcl::context &context, llcl::context &into)
{
    into = llcl::make<llcl::context>(llcl_context_duplicate, context.get(), nullptr);
    return into.get();
}

/* Makes a context and ends it, in a destructor. */
struct within {
    const llcl::context &context;
    ~within()
    {
        llcl_context_t *old;
        {
            llcl::context own;
            old = duplicate(context, own);
            CHECK(llcl_barrier(old) == LLCL_OK);
        }
        CHECK(llcl_barrier(old) == LLCL_ERR_STATE); // it has ended
    }
};

int main()
{
    try {
        llcl::context context = llcl::init();
        try {
            within here{context};
            throw 3;
        } catch (int) {
        }
        if (llcl_rank(context.get()) == 1)
            throw llcl::error(LLCL_ERR_INVALID, "planted");
        (void)llcl_barrier(context.get());
        std::_Exit(1);
    } catch (const llcl::error &) {
        return 7;
    }
}
