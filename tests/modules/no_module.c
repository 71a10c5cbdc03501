/* A shared object without llcl_wire_module(), which libllcl refuses. */
int llcl_wire_nothing(void);
int llcl_wire_nothing(void)
{
    return 0;
}
