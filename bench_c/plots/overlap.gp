load plots . '/common.gp'
set logscale x
@size_tics
set xrange [700:3e7]
set xlabel 'bytes'
set ylabel 'per cent hidden'
set yrange [*<-3:103<*]
set key below maxrows 3 samplen 1.5 font ',9'
set bmargin 7
set multiplot layout 2,2
do for [k=1:4] {
    operation = word('broadcast allreduce broadcast allreduce', k)
    load_name = k <= 2 ? 'half load' : 'all busy'
    what = operation . '; overlap; ' . load_name
    set title sprintf('overlap of %s, 2 ranks, %s', operation, load_name) font ',11'
    plot rows(what, 'offload') using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(1) title 'engine offload', \
         rows(what, 'thread') using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(2) title 'engine thread', \
         rows(what, 'Open MPI persistent') using 8:12 with linespoints lw 1.5 pt 4 ps 0.5 lc rgb color(3) title 'Open MPI persistent', \
         rows(what, 'MPICH persistent') using 8:12 with linespoints lw 1.5 pt 6 ps 0.5 lc rgb '#b08000' title 'MPICH persistent'
}
unset multiplot
