load plots . '/common.gp'
set logscale x
set xlabel 'threads of one process'
set xrange [0.8:18]
set xtics (1, 2, 4, 8, 15)
set yrange [0:*]
set bmargin 6
set multiplot layout 2,2
do for [what in '"one way" "one way; try and yield"'] {
    set title 'active messages of 8 B, ' . what font ',11'
    set ylabel 'million messages a second'
    plot for [i=1:3] rows(what, word(modes, i)) using 7:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i)
    set title what . ': slowest thread / fastest' font ',11'
    set ylabel ''
    plot for [i=1:3] rows(what . '; slowest / fastest thread', word(modes, i)) using 7:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(modes, i)
}
unset multiplot
