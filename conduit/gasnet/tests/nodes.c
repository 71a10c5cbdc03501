/* Do the queries return the ranks that share memory and the ranks of the machine, and is a segment
 * mapped at exactly the former, at the offset that gasnet_getNodeInfo returns? With
 * LLCL_NODE_ID=0,0,1,1 two ranks share memory, otherwise all ranks. All ranks are on one
 * machine. */
#include "t.h"

int main(void) {
    gasnet_nodeinfo_t table[4];
    gex_RankInfo_t *members, *on_host;
    gex_Rank_t count, place, nodes, node, hosts, host, host_count, host_place;
    begin(NULL, 0);
    unsigned per_node = getenv("LLCL_NODE_ID") ? 2 : all;
    CHECK(all <= 4 && gasnet_getNodeInfo(table, (int)all) == GASNET_OK);
    gex_System_QueryNbrhdInfo(&members, &count, &place);
    gex_System_QueryHostInfo(&on_host, &host_count, &host_place);
    gex_System_QueryMyPosition(&nodes, &node, &hosts, &host);
    EQUAL(count, per_node);
    EQUAL(host_count, all);
    EQUAL(host_place, me);
    EQUAL(nodes, all / per_node);
    EQUAL(hosts, 1);
    EQUAL(node, me / per_node);
    EQUAL(host, 0);
    EQUAL(place, me % per_node);
    for (unsigned r = 0; r < all; r++) {
        void *there = NULL, *here = NULL;
        uintptr_t size = 0;
        EQUAL(table[r].supernode, r / per_node);
        EQUAL(table[r].host, 0);
        EQUAL(on_host[r].gex_jobrank, r);
        EQUAL(gex_Segment_QueryBound(tm, r, &there, &here, &size), 0);
        EQUAL(size, SEGMENT);
        CHECK(there == base_of(r) && !here == (r / per_node != node));
        EQUAL(table[r].offset, here ? (uintptr_t)here - (uintptr_t)there : 0);
        if (here) {
            ((volatile uint64_t *)here)[me] = 1000 + me;
        }
    }
    barrier();
    for (unsigned i = 0; i < count; i++) {
        gex_Rank_t r = members[i].gex_jobrank;
        EQUAL(r, node * per_node + i);
        EQUAL(((volatile uint64_t *)base_of(me))[r], 1000 + r);
    }
    end();
}
