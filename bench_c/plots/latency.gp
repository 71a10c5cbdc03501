load plots . '/common.gp'
set logscale xy
@size_tics
set xlabel 'bytes'
set ylabel 'nanoseconds'
set format y '10^{%L}'
set key maxrows 2 samplen 1.5 font ',9'
set bmargin 6
set multiplot layout 2,2
do for [what in '"write mapped" "read mapped" "write registered" "read registered"'] {
    set title 'latency of one ' . what . ' (median; bars: quartiles)' font ',11'
    plot for [i=1:3] rows(what, word(modes, i)) using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i), \
         rows(what, 'auto') using 8:17 with lines lw 2 dt 2 lc rgb '#555555' title (what eq 'write mapped' || what eq 'read mapped' ? 'plain C function' : 'process\_vm'), \
         rows(what, 'offload') using 8:17 with lines lw 2 dt 3 lc rgb '#999999' title '+ two hand-overs'
}
unset multiplot
