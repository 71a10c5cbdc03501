//! Which ranks of a team share a node and its memory.

use std::collections::HashMap;
use std::hash::Hash;

/// The nodes of a team, numbered in the order of their first ranks.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// The node of each rank.
    of: Vec<u32>,
    /// The ranks of each node, in their order.
    members: Vec<Vec<usize>>,
}

impl Nodes {
    /// Nodes by name: `names` has the name of the node of each rank.
    pub fn new<Name: Eq + Hash>(names: impl IntoIterator<Item = Name>) -> Nodes {
        let mut known = HashMap::new();
        let mut nodes = Nodes { of: Vec::new(), members: Vec::new() };
        for (rank, name) in names.into_iter().enumerate() {
            let number = *known.entry(name).or_insert(nodes.members.len());
            if number == nodes.members.len() {
                nodes.members.push(Vec::new());
            }
            nodes.of.push(number as u32);
            nodes.members[number].push(rank);
        }
        nodes
    }

    /// A single node with `ranks` ranks.
    pub fn one(ranks: usize) -> Nodes {
        Nodes::new((0..ranks).map(|_| ()))
    }

    /// The number of nodes.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The node of a rank.
    pub fn of(&self, rank: usize) -> usize {
        self.of[rank] as usize
    }

    /// Whether two ranks share a node.
    pub fn share(&self, one: usize, other: usize) -> bool {
        self.of[one] == self.of[other]
    }

    /// Whether each rank has a node of its own.
    pub fn are_single(&self) -> bool {
        self.count() == self.of.len()
    }

    /// The ranks of the node of `rank`, itself included, in their order.
    pub fn beside(&self, rank: usize) -> &[usize] {
        &self.members[self.of(rank)]
    }

    /// The ranks of a node, in their order.
    pub fn members(&self, node: usize) -> &[usize] {
        &self.members[node]
    }

    /// The number of ranks of the smallest node.
    pub fn least(&self) -> usize {
        self.members.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// The rank number `index` of each node. Every node must have more ranks than `index`.
    pub fn indices(&self, index: usize) -> Vec<usize> {
        self.members.iter().map(|members| members[index]).collect()
    }

    /// The leader of each node: its first rank, or in the root's node the root.
    pub fn leaders(&self, root: usize) -> Vec<usize> {
        let mut leaders = self.indices(0);
        leaders[self.of(root)] = root;
        leaders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_dealt_out_to_their_nodes() {
        let nodes = Nodes::new([7, 1, 7, 2, 1, 1]);
        assert_eq!((nodes.count(), nodes.least(), nodes.of(4)), (3, 1, 1));
        assert_eq!((nodes.beside(5), nodes.beside(3)), (&[1, 4, 5][..], &[3][..]));
        assert_eq!((nodes.indices(0), nodes.leaders(4)), (vec![0, 1, 3], vec![0, 4, 3]));
        assert!(nodes.share(0, 2) && !nodes.share(0, 1) && !nodes.are_single());
        assert!(Nodes::new(0..3).are_single() && Nodes::one(3).least() == 3);
    }
}
