load plots . '/common.gp'
set logscale xy
set xlabel 'threads of one process'
set ylabel 'million operations a second'
set xrange [0.8:18]
set xtics (1, 2, 4, 8, 15)
set format x '%g'
set format y '%g'
set key maxrows 2 samplen 1.5 font ',9'
set bmargin 6
set multiplot layout 2,2
do for [what in '"write; completion none" "read; completion none" "fetch-add; completion none" "read; completion call"'] {
    set title '8 B ' . what font ',11'
    plot for [i=1:3] rows_of(what, word(modes, i), 'M/s') using 7:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i), \
         rows_of(what, 'auto', 'M/s') using 7:17 with lines lw 2 dt 2 lc rgb '#555555' title 'plain C function'
}
unset multiplot
