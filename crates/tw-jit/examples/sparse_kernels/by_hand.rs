//! The same kernels as plain loops. Each allocates its result, with coordinates where it makes some.

use crate::operands::{Csr, Fibres};

fn row(pos: &[u32], i: usize) -> std::ops::Range<usize> {
    pos[i] as usize..pos[i + 1] as usize
}

pub fn spmv(a: &Csr, x: &[f64]) -> Vec<f64> {
    (0..a.rows).map(|i| row(&a.pos, i).fold(0.0, |sum, p| sum + a.values[p] * x[a.crd[p] as usize])).collect()
}

pub fn spmm(a: &Csr, right: &[f64], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; a.rows * n];
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        for p in row(&a.pos, i) {
            let (value, k) = (a.values[p], a.crd[p] as usize);
            out.iter_mut().zip(&right[k * n..][..n]).for_each(|(out, x)| *out += value * x);
        }
    }
    out
}

pub fn add3(a: &Csr, b: &Csr, c: &Csr) -> Vec<f64> {
    let (mut pos, mut crd, mut values) = (vec![0u32], Vec::<u32>::new(), Vec::new());
    for i in 0..a.rows {
        let all = [a, b, c];
        let mut at = all.map(|m| row(&m.pos, i));
        let next = |k: usize, at: &std::ops::Range<usize>| {
            if at.is_empty() { u32::MAX } else { all[k].crd[at.start] }
        };
        let mut heads = [0, 1, 2].map(|k| next(k, &at[k]));
        loop {
            let j = heads[0].min(heads[1]).min(heads[2]);
            if j == u32::MAX {
                break;
            }
            let mut sum = 0.0;
            for k in 0..3 {
                if heads[k] == j {
                    sum += all[k].values[at[k].start];
                    at[k].start += 1;
                    heads[k] = next(k, &at[k]);
                }
            }
            crd.push(j);
            values.push(sum);
        }
        pos.push(crd.len() as u32);
    }
    std::hint::black_box((pos, crd));
    values
}

pub fn sddmm(a: &Csr, left: &[f64], right: &[f64], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; a.values.len()];
    for i in 0..a.rows {
        let left = &left[i * n..][..n];
        for p in row(&a.pos, i) {
            let right = &right[a.crd[p] as usize * n..][..n];
            out[p] = a.values[p] * left.iter().zip(right).fold(0.0, |sum, (x, y)| sum + x * y);
        }
    }
    out
}

pub fn spgemm(a: &Csr, b: &Csr) -> Vec<f64> {
    let (mut pos, mut crd, mut values) = (vec![0u32], Vec::new(), Vec::new());
    let (mut sums, mut touched, mut list) = (vec![0.0; b.columns], vec![false; b.columns], Vec::<u32>::new());
    for i in 0..a.rows {
        for p in row(&a.pos, i) {
            for q in row(&b.pos, a.crd[p] as usize) {
                let j = b.crd[q] as usize;
                if !touched[j] {
                    touched[j] = true;
                    list.push(j as u32);
                }
                sums[j] += a.values[p] * b.values[q];
            }
        }
        list.sort_unstable();
        for j in list.drain(..) {
            crd.push(j);
            values.push(std::mem::take(&mut sums[j as usize]));
            touched[j as usize] = false;
        }
        pos.push(crd.len() as u32);
    }
    std::hint::black_box((pos, crd));
    values
}

pub fn ttv(b: &Fibres, c: &[f64]) -> Vec<f64> {
    (0..b.crd[0].len())
        .map(|f| row(&b.pos[1], f).fold(0.0, |sum, p| sum + b.values[p] * c[b.crd[1][p] as usize]))
        .collect()
}

pub fn mttkrp(b: &Fibres, c: &[f64], d: &[f64], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; b.shape[0] * n];
    for (i, out) in out.chunks_exact_mut(n).enumerate() {
        for f in row(&b.pos[0], i) {
            let c = &c[b.crd[0][f] as usize * n..][..n];
            for p in row(&b.pos[1], f) {
                let (value, d) = (b.values[p], &d[b.crd[1][p] as usize * n..][..n]);
                out.iter_mut().zip(c).zip(d).for_each(|((out, c), d)| *out += value * d * c);
            }
        }
    }
    out
}
