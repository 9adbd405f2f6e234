//! Generated operands; equal on every machine.

use std::io::{Result, Write};
use std::path::Path;
use std::sync::Arc;

use tw_ir::{Buffer, Scalar};
use tw_sparse::SparseTensor;

struct Draw(u64);
impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        ((self.next() as u128 * n as u128) >> 64) as usize
    }
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 + 0.5
    }
}

pub struct Dense {
    pub values: Vec<f64>,
    pub tensor: SparseTensor,
}

pub fn dense(shape: &[usize], seed: u64) -> Dense {
    let mut draw = Draw(seed);
    let values: Vec<f64> = (0..shape.iter().product()).map(|_| draw.unit()).collect();
    let format = vec!["dense"; shape.len()].join(", ").parse().unwrap();
    let shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let levels = vec![Vec::new(); shape.len()];
    let stored = Arc::new(Buffer::F64(values.clone()));
    let tensor = SparseTensor::from_parts(shape, format, Scalar::F64(0.0), levels, stored).unwrap();
    Dense { values, tensor }
}

/// A matrix in CSR.
pub struct Csr {
    pub rows: usize,
    pub columns: usize,
    pub pos: Vec<u32>,
    pub crd: Vec<u32>,
    pub values: Vec<f64>,
}

impl Csr {
    /// From sorted (row, column) pairs without repetition.
    fn new(rows: usize, columns: usize, pairs: impl Iterator<Item = (usize, usize)>, seed: u64) -> Csr {
        let (mut pos, mut crd) = (vec![0; rows + 1], Vec::new());
        for (i, j) in pairs {
            pos[i + 1] += 1;
            crd.push(j as u32);
        }
        (0..rows).for_each(|i| pos[i + 1] += pos[i]);
        let mut draw = Draw(seed);
        let values = crd.iter().map(|_| draw.unit()).collect();
        Csr { rows, columns, pos, crd, values }
    }

    pub fn tensor(&self) -> SparseTensor {
        let index = |values: &[u32]| Arc::new(Buffer::U32(values.to_vec()));
        let levels = vec![vec![], vec![index(&self.pos), index(&self.crd)]];
        let shape = vec![self.rows as u64, self.columns as u64];
        let values = Arc::new(Buffer::F64(self.values.clone()));
        SparseTensor::from_parts(shape, "dense, compressed".parse().unwrap(), Scalar::F64(0.0), levels, values).unwrap()
    }

    /// The same matrix with its columns moved on by `by`, around the end.
    pub fn shifted(&self, by: usize) -> Csr {
        let mut crd = Vec::with_capacity(self.crd.len());
        for row in self.pos.windows(2) {
            let mut columns: Vec<u32> = self.crd[row[0] as usize..row[1] as usize]
                .iter()
                .map(|&j| ((j as usize + by) % self.columns) as u32)
                .collect();
            columns.sort_unstable();
            crd.extend(columns);
        }
        Csr { rows: self.rows, columns: self.columns, pos: self.pos.clone(), crd, values: self.values.clone() }
    }

    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        let header = [self.rows as u32, self.columns as u32];
        write(directory, &format!("{name}.shape"), header.iter().flat_map(|v| v.to_le_bytes()))?;
        write(directory, &format!("{name}.pos"), self.pos.iter().flat_map(|v| v.to_le_bytes()))?;
        write(directory, &format!("{name}.crd"), self.crd.iter().flat_map(|v| v.to_le_bytes()))?;
        write(directory, &format!("{name}.val"), self.values.iter().flat_map(|v| v.to_le_bytes()))
    }
}

fn write(directory: &Path, name: &str, bytes: impl Iterator<Item = u8>) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::File::create(directory.join(name))?.write_all(&bytes.collect::<Vec<u8>>())
}

fn distinct(mut coordinates: Vec<usize>) -> Vec<usize> {
    coordinates.sort_unstable();
    coordinates.dedup();
    coordinates
}

/// Ten elements per row, anywhere.
pub fn uniform(nonzeros: usize) -> Csr {
    let (n, mut draw) = (nonzeros / 10, Draw(11));
    let rows: Vec<Vec<usize>> = (0..n).map(|_| distinct((0..10).map(|_| draw.below(n)).collect())).collect();
    let pairs = rows.iter().enumerate().flat_map(|(i, row)| row.iter().map(move |&j| (i, j)));
    Csr::new(n, n, pairs, 12)
}

/// Ten elements per row, beside the diagonal.
pub fn banded(nonzeros: usize) -> Csr {
    let n = nonzeros / 10;
    let pairs = (0..n).flat_map(|i| (i.saturating_sub(5)..(i + 5).min(n)).map(move |j| (i, j)));
    Csr::new(n, n, pairs, 13)
}

/// A graph of R-MAT with the usual probabilities (Chakrabarti, Zhan, Faloutsos, "R-MAT: A Recursive Model for Graph Mining", 2004).
pub fn power_law(nonzeros: usize) -> Csr {
    let (mut draw, bits) = (Draw(14), (nonzeros / 8).next_power_of_two().trailing_zeros());
    let n = 1usize << bits;
    let edges = distinct(
        (0..nonzeros + nonzeros / 16)
            .map(|_| {
                (0..bits).fold((0usize, 0usize), |(i, j), _| {
                    let (down, right) = match draw.below(100) {
                        0..57 => (0, 0),
                        57..76 => (0, 1),
                        76..95 => (1, 0),
                        _ => (1, 1),
                    };
                    (2 * i + down, 2 * j + right)
                })
            })
            .map(|(i, j)| i * n + j)
            .collect(),
    );
    Csr::new(n, n, edges.into_iter().map(|edge| (edge / n, edge % n)), 15)
}

/// A 3-tensor whose first level is dense and whose others are compressed.
pub struct Fibres {
    pub shape: [usize; 3],
    pub pos: [Vec<u32>; 2],
    pub crd: [Vec<u32>; 2],
    pub values: Vec<f64>,
}

/// 100 elements per slice, `per_fibre` of them in each fibre.
pub fn fibres(nonzeros: usize, per_fibre: usize) -> Fibres {
    let shape = [nonzeros / 100, 2000, 2000];
    let mut draw = Draw(16);
    let (mut pos, mut crd) = ([vec![0], vec![0]], [Vec::new(), Vec::new()]);
    for _ in 0..shape[0] {
        for j in distinct((0..100 / per_fibre).map(|_| draw.below(shape[1])).collect()) {
            crd[0].push(j as u32);
            crd[1].extend(distinct((0..per_fibre).map(|_| draw.below(shape[2])).collect()).iter().map(|&k| k as u32));
            pos[1].push(crd[1].len() as u32);
        }
        pos[0].push(crd[0].len() as u32);
    }
    let values = crd[1].iter().map(|_| draw.unit()).collect();
    Fibres { shape, pos, crd, values }
}

impl Fibres {
    pub fn tensor(&self) -> SparseTensor {
        let index = |values: &[u32]| Arc::new(Buffer::U32(values.to_vec()));
        let level = |l: usize| vec![index(&self.pos[l]), index(&self.crd[l])];
        let shape = self.shape.iter().map(|&n| n as u64).collect();
        let format = "dense, compressed, compressed".parse().unwrap();
        let values = Arc::new(Buffer::F64(self.values.clone()));
        SparseTensor::from_parts(shape, format, Scalar::F64(0.0), vec![vec![], level(0), level(1)], values).unwrap()
    }

    pub fn write(&self, directory: &Path, name: &str) -> Result<()> {
        let header = self.shape.map(|n| n as u32);
        write(directory, &format!("{name}.shape"), header.iter().flat_map(|v| v.to_le_bytes()))?;
        for l in 0..2 {
            write(directory, &format!("{name}.pos{l}"), self.pos[l].iter().flat_map(|v| v.to_le_bytes()))?;
            write(directory, &format!("{name}.crd{l}"), self.crd[l].iter().flat_map(|v| v.to_le_bytes()))?;
        }
        write(directory, &format!("{name}.val"), self.values.iter().flat_map(|v| v.to_le_bytes()))
    }
}
