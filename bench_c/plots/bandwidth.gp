load plots . '/common.gp'
set logscale xy
@size_tics
set xlabel 'bytes'
set ylabel 'GB/s'
set format y '%g'
set key maxrows 2 samplen 1.5 font ',9'
set bmargin 6
set multiplot layout 2,2
do for [what in '"write mapped" "read mapped" "write registered" "read registered"'] {
    set title what font ',11'
    plot for [i=1:3] rows(what, word(modes, i)) using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i), \
         rows(what, 'auto') using 8:17 with lines lw 2 dt 2 lc rgb '#555555' title (what eq 'write mapped' || what eq 'read mapped' ? 'memcpy' : 'process\_vm\_readv/writev')
}
unset multiplot
