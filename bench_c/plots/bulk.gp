load plots . '/common.gp'
set logscale x
set xtics ('64K' 65536, '256K' 262144, '1M' 1048576, '4M' 4194304, '16M' 16777216)
set xlabel 'bytes'
set ylabel 'GB/s'
set yrange [0:*]
set bmargin 6
set multiplot layout 2,2
do for [what in '"bulk; pulled from mapped" "bulk; pulled from registered" "long; written to mapped" "long; written to registered"'] {
    set title what font ',11'
    plot for [i=1:3] rows(what, word(modes, i)) using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i), \
         rows(what, 'auto') using 8:17 with lines lw 2 dt 2 lc rgb '#555555' title 'the same copy without the library'
}
unset multiplot
