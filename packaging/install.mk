# make install, make uninstall. The version is in the file names, so both need only the tree.
DOCUMENTS = README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE $(wildcard docs/*.md docs/decisions/*.md examples/*.[ch] \
	examples/fortran/*.[fF]90 $(foreach folder,examples examples/fortran,$(folder)/Makefile $(folder)/CMakeLists.txt))
# Links to the sources, which are not installed, become their text.
TO_SOURCES = s@\[\([^]]*\)\](\(src\|include\|include/llcl.h\|c_tests\|bench_c\|python\|fortran\))@\1@g
MANIFEST = $(LIBDIR)/libllcl.so.$(VERSION) $(LIBDIR)/$(SONAME) $(LIBDIR)/libllcl.so $(LIBDIR)/libllcl.a \
	$(INCLUDEDIR)/llcl.h $(INCLUDEDIR)/llcl.hpp $(INCLUDEDIR)/llcl_inline.h $(INCLUDEDIR)/llcl_wire.h $(INCLUDEDIR)/llcl_mpi.h $(BINDIR)/llcl-run $(BINDIR)/llcl-info $(LIBDIR)/pkgconfig/llcl.pc \
	$(LIBDIR)/cmake/LLCL/LLCLConfig.cmake $(LIBDIR)/cmake/LLCL/LLCLConfigVersion.cmake \
	$(addprefix $(DOCDIR)/,$(DOCUMENTS)) $(DATADIR)/tsan.supp

MAN_PAGES = $(addprefix $(MANDIR)/,$(shell scripts/make-man --list))

# The modules for MPIs, where `make mpi` has built them. The library looks for them beside itself.
WIRE_MODULES = libllcl-mpi-openmpi.so libllcl-mpi-mpich.so
WIRE_BUILT = $(wildcard $(addprefix $(BUILD)/lib/llcl/,$(WIRE_MODULES)))
WIRE_MANIFEST = $(addprefix $(LIBDIR)/llcl/,$(WIRE_MODULES))

# Only where the module was built, or can be.
FORTRAN_MANIFEST = $(LIBDIR)/libllcl_fortran.a $(FMODDIR)/llcl.mod $(FMODDIR)/llcl_c.mod $(LIBDIR)/pkgconfig/llcl-fortran.pc
WITH_FORTRAN := $(if $(or $(FORTRAN),$(wildcard $(FORTRAN_LIB))),yes)

# The CMake package finds its files from where it lies, so that the tree can be moved.
FROM_CMAKE = realpath -m -s --relative-to=$(LIBDIR)/cmake/LLCL
# install(1) sets the modes of the other files whatever the umask is.
PUBLIC = umask 022;
FILL = $(PUBLIC) sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@SONAME@|$(SONAME)|g' -e 's|@PREFIX@|$(PREFIX)|g' \
	-e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@FMODDIR@|$(FMODDIR)|g' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|g' -e 's|@BINDIR@|$(BINDIR)|g' \
	-e 's|@SYSTEM_LIBS@|$(SYSTEM_LIBS)|g' -e "s|@REL_LIBDIR@|$$($(FROM_CMAKE) $(LIBDIR))|g" \
	-e "s|@REL_FMODDIR@|$$($(FROM_CMAKE) $(FMODDIR))|g" -e "s|@REL_INCLUDEDIR@|$$($(FROM_CMAKE) $(INCLUDEDIR))|g" -e "s|@REL_BINDIR@|$$($(FROM_CMAKE) $(BINDIR))|g"

check-prefix:
	@case '$(PREFIX)' in *' '* | [!/]*) echo "PREFIX is '$(PREFIX)', expected an absolute path without spaces" >&2; exit 1 ;; esac

# What is built already is installed as it is: root often has no cargo.
install: install-conduit
install-conduit: install-library
install-library: check-prefix man $(if $(and $(wildcard $(SHARED)),$(wildcard $(BUILD)/bin/llcl-run)),,all) $(if $(WITH_FORTRAN),$(if $(wildcard $(FORTRAN_LIB)),,$(FORTRAN_LIB)))
	$(INSTALL) -d $(sort $(dir $(addprefix $(DESTDIR),$(MANIFEST) $(if $(WITH_FORTRAN),$(FORTRAN_MANIFEST)))))
	$(INSTALL) -m 755 $(SHARED) $(DESTDIR)$(LIBDIR)/
	ln -sf libllcl.so.$(VERSION) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libllcl.so
	$(INSTALL) -m 644 $(STATIC) $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 include/llcl.h include/llcl.hpp include/llcl_inline.h include/llcl_wire.h include/llcl_mpi.h $(DESTDIR)$(INCLUDEDIR)/
	$(INSTALL) -m 755 $(TOOLS) $(DESTDIR)$(BINDIR)/
	for f in $(DOCUMENTS); do $(INSTALL) -m 644 $$f $(DESTDIR)$(DOCDIR)/$$f || exit 1; done
	$(PUBLIC) sed '$(TO_SOURCES)' README.md > $(DESTDIR)$(DOCDIR)/README.md
	$(PUBLIC) sed 's|/usr/local/share/llcl|$(DATADIR)|' packaging/tsan.supp > $(DESTDIR)$(DATADIR)/tsan.supp
	$(INSTALL) -d $(sort $(dir $(addprefix $(DESTDIR),$(MAN_PAGES))))
	for s in 1 3 7; do $(INSTALL) -m 644 $(BUILD)/man/man$$s/* $(DESTDIR)$(MANDIR)/man$$s/ || exit 1; done
	$(FILL) packaging/llcl.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/llcl.pc
	for f in LLCLConfig.cmake LLCLConfigVersion.cmake; do \
		$(FILL) packaging/$$f.in > $(DESTDIR)$(LIBDIR)/cmake/LLCL/$$f || exit 1; done
ifneq ($(WIRE_BUILT),)
	$(INSTALL) -d $(DESTDIR)$(LIBDIR)/llcl
	$(INSTALL) -m 755 $(WIRE_BUILT) $(DESTDIR)$(LIBDIR)/llcl/
endif
ifneq ($(WITH_FORTRAN),)
	$(INSTALL) -m 644 $(FORTRAN_LIB) $(DESTDIR)$(LIBDIR)/
	$(INSTALL) -m 644 $(FORTRAN_MODS) $(DESTDIR)$(FMODDIR)/
	$(FILL) packaging/llcl-fortran.pc.in > $(DESTDIR)$(LIBDIR)/pkgconfig/llcl-fortran.pc
endif

# Directories of other packages stay; ours go when they are empty.
uninstall: check-prefix uninstall-conduit
	rm -f $(addprefix $(DESTDIR),$(MANIFEST) $(WIRE_MANIFEST) $(FORTRAN_MANIFEST) $(MAN_PAGES))
	-rmdir $(DESTDIR)$(FMODDIR) $(DESTDIR)$(LIBDIR)/llcl $(DESTDIR)$(LIBDIR)/cmake/LLCL \
		$(addprefix $(DESTDIR)$(DOCDIR)/,docs/decisions docs examples/fortran examples) $(DESTDIR)$(DOCDIR) $(DESTDIR)$(DATADIR) 2>/dev/null

.PHONY: check-prefix install install-library install-conduit uninstall uninstall-conduit
