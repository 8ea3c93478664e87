/* SPDX-License-Identifier: MIT */
/*
 * How far two distributions are apart, as their histograms tell it. With F the
 * share of numbers up to x:
 *
 *   Kolmogorov-Smirnov   the largest |F_a(x) - F_b(x)|: 0 the same, 1 nothing in common
 *   earth mover's        the area between F_a and F_b: by how much a number has to
 *                        be moved on average to make one of the other
 *
 * Both are NaN when one of them is empty. Pure functions.
 */
#ifndef BASE_DISTANCE_H
#define BASE_DISTANCE_H

#include "base/histogram.h"

double distance_ks(const struct histogram *a, const struct histogram *b);
double distance_emd(const struct histogram *a, const struct histogram *b);

#endif
