/* Build systems of clients look for this file to see that the conduit llcl is installed. */
#error include gasnet.h or gasnetex.h instead
