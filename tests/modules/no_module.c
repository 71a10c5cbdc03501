/* A shared object that is no module. */
int llcl_wire_nothing(void);
int llcl_wire_nothing(void)
{
    return 0;
}
