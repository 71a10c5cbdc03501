load plots . '/common.gp'
set title 'Post overhead of 8-byte requests: one at a time (t1 - t0, timer included), and the mean of 64 in a row'
cases = '"write mapped" "read mapped" "fetch-add mapped" "write registered" "read registered" "write mapped deferred" "write mapped; 64 in a row" "read mapped; 64 in a row" "fetch-add mapped; 64 in a row" "write mapped deferred; 64 in a row"'
labels = "\"write\nmapped\" \"read\nmapped\" \"fetch-add\nmapped\" \"write\nregistered\" \"read\nregistered\" \"write\ndeferred\" \"64 writes\nmapped\" \"64 reads\nmapped\" \"64 adds\nmapped\" \"64 writes\ndeferred\""
set logscale y
set yrange [1:*]
set ylabel 'nanoseconds for one request'
set format y '%g'
set xrange [0.4:words(cases)+0.6]
set xtics () font ',10'
set for [i=1:words(cases)] xtics add (word(labels, i) i)
set key maxrows 1
set bmargin 6
set boxwidth 0.24
set style fill solid 0.8
plot for [i=1:3] for [k=1:words(cases)] rows_of(word(cases, k), word(modes, i), 'ns') using (k + (i - 2) * 0.27):12 with boxes lc rgb color(i) title (k == 1 ? word(modes, i) : ''), \
     60 with lines lw 2 dt 2 lc rgb '#555555' title 'asked for with offload: 60 ns'
