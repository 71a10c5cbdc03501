load plots . '/common.gp'
set title 'Post overhead of 8-byte requests (t1 - t0 with its timer; and the mean of 64 posts in a row)'
cases = '"write mapped" "read mapped" "fetch-add mapped" "write registered" "read registered" "write mapped deferred" "write mapped; 64 in a row" "read mapped; 64 in a row" "fetch-add mapped; 64 in a row" "write mapped deferred; 64 in a row"'
set logscale y
set ylabel 'nanoseconds'
set format x '%g'
set format y '%g'
set xrange [0.4:words(cases)+0.6]
set xtics rotate by -25 font ',10'
set for [i=1:words(cases)] xtics add (word(cases, i) i)
set boxwidth 0.24
set style fill solid 0.8
set key inside top right maxcols 1
plot for [i=1:3] for [k=1:words(cases)] rows_of(word(cases, k), word(modes, i), 'ns') using (k + (i - 2) * 0.27):12 with boxes lc rgb color(i) title (k == 1 ? word(modes, i) : ''), \
     60 with lines lw 2 dt 2 lc rgb '#555555' title 'asked for with offload: 60 ns'
