load plots . '/common.gp'
# The rows of one case, one library or MPI, and one number of ranks.
of(what, who, ranks) = sprintf("< awk -F, -v w='%s' -v m='%s' -v n=%d '$2 == w && $3 == m && $6 == n' '%s'", what, who, ranks, csv)
set logscale xy
@size_tics
set xlabel 'bytes'
set ylabel 'microseconds'
set format y '%g'
set key below maxrows 3 samplen 1.5 font ',9'
set bmargin 7
set multiplot layout 2,2
do for [k=1:4] {
    operation = word('broadcast allreduce broadcast allreduce', k)
    ranks = word('2 2 4 4', k) + 0
    what = operation . (ranks == 2 ? '; alone' : '; loop')
    set title sprintf('%s, %d ranks (median; bars: quartiles)', operation, ranks) font ',11'
    plot of(what, 'offload', ranks) using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(1) title 'engine offload', \
         of(what, 'thread', ranks) using 8:12:13:14 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(2) title 'engine thread', \
         of(what, 'Open MPI persistent', ranks) using 8:12 with linespoints lw 1.5 pt 4 ps 0.5 lc rgb color(3) title 'Open MPI persistent', \
         of(what, 'Open MPI blocking', ranks) using 8:12 with lines lw 1.5 dt 3 lc rgb color(3) title 'Open MPI blocking', \
         of(what, 'MPICH persistent', ranks) using 8:12 with linespoints lw 1.5 pt 6 ps 0.5 lc rgb '#b08000' title 'MPICH persistent', \
         of(what, 'MPICH blocking', ranks) using 8:12 with lines lw 1.5 dt 3 lc rgb '#b08000' title 'MPICH blocking', \
         of(operation . '; alone', 'raw', ranks) using 8:12 with lines lw 2 dt 2 lc rgb '#555555' title 'flag and memcpy'
}
unset multiplot
