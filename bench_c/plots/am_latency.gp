load plots . '/common.gp'
set logscale xy
set xtics ('8' 8, '64' 64, '512' 512, '1K' 1024, '4K' 4096) font ',10'
set xrange [6:5500]
set xlabel 'bytes'
set ylabel 'nanoseconds'
set format y '%g'
set bmargin 6
set multiplot layout 2,1
do for [what in '"ping-pong; half round trip" "request and reply; round trip"'] {
    set title 'active messages: ' . what . ' (median; bars: quartiles)' font ',11'
    plot for [i=1:3] rows(what, word(modes, i)) using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i), \
         rows(what, 'auto') using 8:17 with lines lw 2 dt 2 lc rgb '#555555' title 'cache line handed over (+ memcpy)'
}
unset multiplot
