# The GASNet conduit's part of make install and make uninstall; included by the Makefile of the tree.
GASNET_MODES = seq par parsync
GASNET_LIBS = $(foreach m,$(GASNET_MODES),libgasnet-llcl-$(m).so libgasnet-llcl-$(m).a)
GASNET_HEADERS = $(wildcard conduit/gasnet/include/*.h)
GASNET_INNER = $(wildcard conduit/gasnet/include/llcl-gasnet/*.h)
GASNET_MANIFEST = $(addprefix $(LIBDIR)/,$(GASNET_LIBS)) $(BINDIR)/gasnetrun_llcl \
	$(addprefix $(INCLUDEDIR)/,$(notdir $(GASNET_HEADERS))) \
	$(addprefix $(INCLUDEDIR)/llcl-gasnet/,$(notdir $(GASNET_INNER))) $(INCLUDEDIR)/llcl-conduit/gasnet_core.h \
	$(foreach m,$(GASNET_MODES),$(LIBDIR)/pkgconfig/gasnet-llcl-$(m).pc $(INCLUDEDIR)/llcl-conduit/llcl-$(m).mak)
GASNET_UPPER = $(subst seq,SEQ,$(subst par,PAR,$(subst sync,SYNC,$(1))))
GASNET_FILL = $(FILL) -e 's|@MODE@|$(1)|g' -e 's|@UPPER@|$(call GASNET_UPPER,$(1))|g' conduit/gasnet/packaging/$(2) > $(DESTDIR)$(3)

# Only where `make conduit` has built it: root often has no compiler.
install-conduit:
ifneq ($(wildcard $(BUILD)/lib/libgasnet-llcl-parsync.so),)
	$(INSTALL) -d $(sort $(dir $(addprefix $(DESTDIR),$(GASNET_MANIFEST))))
	$(INSTALL) -m 755 $(addprefix $(BUILD)/lib/,$(filter %.so,$(GASNET_LIBS))) $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 $(addprefix $(BUILD)/lib/,$(filter %.a,$(GASNET_LIBS))) $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 $(GASNET_HEADERS) $(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 644 $(GASNET_INNER) $(DESTDIR)$(INCLUDEDIR)/llcl-gasnet/
	$(INSTALL) -m 644 conduit/gasnet/packaging/gasnet_core.h $(DESTDIR)$(INCLUDEDIR)/llcl-conduit/
	$(INSTALL) -m 755 conduit/gasnet/packaging/gasnetrun_llcl $(DESTDIR)$(BINDIR)/
	$(foreach m,$(GASNET_MODES),$(call GASNET_FILL,$(m),llcl.mak.in,$(INCLUDEDIR)/llcl-conduit/llcl-$(m).mak) && \
	$(call GASNET_FILL,$(m),gasnet-llcl.pc.in,$(LIBDIR)/pkgconfig/gasnet-llcl-$(m).pc) &&) true
endif

uninstall-conduit:
	rm -f $(addprefix $(DESTDIR),$(GASNET_MANIFEST))
	-rmdir $(DESTDIR)$(INCLUDEDIR)/llcl-gasnet $(DESTDIR)$(INCLUDEDIR)/llcl-conduit 2>/dev/null
