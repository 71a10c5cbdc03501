/*
 * Macros of C and C++.
 */

/**
 * Calls a function that answers a status. On any other answer than LLCL_OK or LLCL_DONE, "try
 * again" included, it prints the answer on stderr and ends the process, and with it the job. For
 * examples, tests and small programs.
 */
#define LLCL_CHECK(call) llcl_must_succeed((call), #call, __FILE__, __LINE__)
