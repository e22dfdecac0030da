#!/usr/bin/env python3
"""Z + jet events at particle level and after a simple detector: pairs to unfold with.

    python generate.py simulation --events 10000 --seed 1 -o simulation.npz
    python generate.py nature     --events 10000 --seed 2 -o nature.npz

Each file holds `gen` and `sim` (events x 6, float32; row i of both is the same event) and `columns`, the names of the
observables: m, M, w, lnrho, zg, tau21. The README says what they are, what the two models are, and what the detector does.
"""

import argparse
import math
import os
import sys
import tempfile

import fastjet
import numpy as np
import pythia8mc

COLUMNS = ["m", "M", "w", "lnrho", "zg", "tau21"]

RADIUS = 0.4  # of the anti-kt jets
LEAST_JET_PT = 10.0  # GeV
LEAST_Z_PT = 200.0  # GeV
Z_CUT = 0.1  # of soft drop, with beta = 0
FLOOR = -14.0  # of ln rho: jets that are groomed away
FARTHEST_MATCH = RADIUS  # between the jets before and after the detector

PROCESS = """
Print:quiet = on
Beams:eCM = 14000.
WeakBosonAndParton:qqbar2gmZg = on
WeakBosonAndParton:qg2gmZq = on
WeakZ0:gmZmode = 2
23:mayDecay = off
PhaseSpace:pTHatMin = 150.
PartonLevel:MPI = off
Random:setSeed = on
"""
MODELS = {
    # ATLAS A14, a variation with less radiation: the transverse-momentum ordered shower.
    "simulation": "Tune:pp = 26",
    # Another physics: Monash, local recoil in the initial-state shower, thermal fragmentation, a larger coupling.
    "nature": """
Tune:pp = 14
SpaceShower:dipoleRecoil = on
Fragmentation:model = 1
TimeShower:alphaSvalue = 0.150
""",
}


def make_generator(model, seed):
    """Pythia with the settings of a model."""
    generator = pythia8mc.Pythia("", False)
    for line in (PROCESS + MODELS[model]).split("\n") + [f"Random:seed = {seed}"]:
        if line.strip() and not generator.readString(line):
            sys.exit(f"error: Pythia does not know the setting `{line}`")
    if not generator.init():
        sys.exit("error: Pythia cannot be initialised with these settings")
    return generator


def final_particles(event):
    """Momenta (px, py, pz, E), charges and codes of the particles that can be seen, and the transverse momentum of the Z."""
    momenta, charges, codes, z_pt = [], [], [], 0.0
    for particle in event:
        if not particle.isFinal():
            continue
        if particle.id() == 23:
            z_pt = particle.pT()
        elif particle.isVisible():
            momenta.append((particle.px(), particle.py(), particle.pz(), particle.e()))
            charges.append(particle.charge())
            codes.append(abs(particle.id()))
    return np.array(momenta).reshape(-1, 4), np.array(charges), np.array(codes), z_pt


def detect(momenta, charges, codes, rng):
    """What a detector makes of particles: momenta of the tracks and calorimeter deposits it finds.

    Directions are smeared by a Gaussian, energies by a log-normal factor of the same mean; masses are those of particles at rest in
    the calorimeter's hypothesis: tracks are pions, deposits massless.
    """
    px, py, pz, energy = momenta.T
    pt = np.hypot(px, py)
    eta = np.arcsinh(pz / np.maximum(pt, 1e-9))
    phi = np.arctan2(py, px)
    central = np.abs(eta) < 1.5

    track = (charges != 0) & (np.abs(eta) < 2.5) & (pt > 0.4)
    efficiency = np.where(pt < 1.0, 0.75, np.where(central, 0.95, 0.87))
    tracked = track & (rng.random(len(pt)) < efficiency)
    track_resolution = np.hypot(np.where(central, 0.01, 0.025), 2e-4 * pt)

    # Charged particles without a track, photons and neutral hadrons leave their energy in a calorimeter.
    photon = (codes == 22) | (codes == 11)
    stochastic = np.where(photon, 0.10, 1.00)
    constant = np.where(photon, 0.01, 0.07)
    threshold = np.where(photon, 0.5, 1.0)
    cell = np.where(photon, 0.0174, 0.087)
    calorimeter_resolution = np.hypot(stochastic / np.sqrt(np.maximum(energy, 0.1)), constant)
    deposited = ~tracked & (np.abs(eta) < 5.0) & (codes != 13)

    resolution = np.where(tracked, track_resolution, calorimeter_resolution)
    spread = np.sqrt(np.log1p(resolution**2))
    factor = np.exp(spread * rng.standard_normal(len(pt)) - spread**2 / 2)
    angle = np.where(tracked, 0.001, cell / math.sqrt(12.0))
    new_eta = eta + angle * rng.standard_normal(len(pt))
    new_phi = phi + angle * rng.standard_normal(len(pt))
    new_pt = np.where(tracked, pt, energy / np.cosh(eta)) * factor
    found = tracked | (deposited & (new_pt * np.cosh(new_eta) > threshold))

    mass = np.where(tracked, 0.13957, 0.0)[found]
    pt, eta, phi = new_pt[found], new_eta[found], new_phi[found]
    out = np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta), np.zeros_like(pt)], axis=1)
    out[:, 3] = np.sqrt((out[:, :3] ** 2).sum(axis=1) + mass**2)
    return out


def pseudojets(momenta):
    """As fastjet takes them."""
    return [fastjet.PseudoJet(*(float(value) for value in row)) for row in momenta]


def hardest_jet(momenta):
    """The hardest anti-kt jet with its clustering, or none."""
    definition = fastjet.JetDefinition(fastjet.antikt_algorithm, RADIUS)
    clustering = fastjet.ClusterSequence(pseudojets(momenta), definition)
    jets = fastjet.sorted_by_pt(clustering.inclusive_jets(LEAST_JET_PT))
    return (jets[0], clustering) if jets else None


def soft_drop(constituents):
    """Mass and momentum fraction of the first splitting that passes, beginning with the widest angle; (0, 0) without one."""
    definition = fastjet.JetDefinition(fastjet.cambridge_algorithm, 10.0)
    clustering = fastjet.ClusterSequence(constituents, definition)
    jet = clustering.exclusive_jets(1)[0]
    while True:
        first, second = fastjet.PseudoJet(), fastjet.PseudoJet()
        if not jet.has_parents(first, second):
            return 0.0, 0.0
        if second.pt() > first.pt():
            first, second = second, first
        fraction = second.pt() / (first.pt() + second.pt())
        if fraction > Z_CUT:
            return max(jet.m(), 0.0), fraction
        jet = first


def two_axes(constituents):
    """Axes of the two winner-take-all kt subjets."""
    scheme = fastjet.JetDefinition(fastjet.kt_algorithm, 10.0, fastjet.WTA_pt_scheme)
    clustering = fastjet.ClusterSequence(constituents, scheme)
    return [(axis.rap(), axis.phi()) for axis in clustering.exclusive_jets(2)]


def observables(jet):
    """The six observables of a jet."""
    constituents = list(jet.constituents())
    pt = np.array([particle.pt() for particle in constituents])
    place = np.array([(particle.rap(), particle.phi()) for particle in constituents])

    def distance(rapidity, azimuth):
        turn = np.abs(place[:, 1] - azimuth)
        return np.hypot(place[:, 0] - rapidity, np.minimum(turn, 2 * math.pi - turn))

    width = float((pt * distance(jet.rap(), jet.phi())).sum() / (pt.sum() * RADIUS))
    mass, fraction = soft_drop(constituents)
    lnrho = 2 * math.log(mass / jet.pt()) if mass > 0.0 else FLOOR
    ratio = 0.0
    if len(constituents) > 2 and width > 0.0:
        nearest = np.min([distance(*axis) for axis in two_axes(constituents)], axis=0)
        ratio = float((pt * nearest).sum() / (pt.sum() * RADIUS)) / width
    return [max(jet.m(), 0.0), len(constituents), width, max(lnrho, FLOOR), fraction, ratio]


def events(generator, rng, counts):
    """Rows of observables, before and after the detector, one event after the other."""
    while True:
        if not generator.next():
            counts["failed"] += 1
            if counts["failed"] > 1000:
                sys.exit("error: Pythia failed a thousand times")
            continue
        counts["generated"] += 1
        momenta, charges, codes, z_pt = final_particles(generator.event)
        if z_pt < LEAST_Z_PT:
            continue
        counts["selected"] += 1
        true = hardest_jet(momenta)
        seen = hardest_jet(detect(momenta, charges, codes, rng))
        if true is None or seen is None or true[0].delta_R(seen[0]) > FARTHEST_MATCH:
            continue
        counts["matched"] += 1
        yield observables(true[0]), observables(seen[0])


def write(path, arrays):
    """Writes the file whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".npz", delete=False) as file:
        np.savez_compressed(file, **arrays)
    os.replace(file.name, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--events", type=int, required=True, help="rows to write")
    parser.add_argument("--seed", type=int, default=1, help="1 to 900000000")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.npz")
    arguments = parser.parse_args()
    if arguments.events < 1 or not 1 <= arguments.seed <= 900_000_000:
        parser.error("expected --events 1 or more, and --seed from 1 to 900000000")

    counts = dict(failed=0, generated=0, selected=0, matched=0)
    rng = np.random.default_rng(arguments.seed)
    rows = events(make_generator(arguments.model, arguments.seed), rng, counts)
    pairs = [next(rows) for _ in range(arguments.events)]
    gen, sim = (np.array([pair[level] for pair in pairs], dtype=np.float32) for level in range(2))
    write(arguments.output, dict(gen=gen, sim=sim, columns=np.array(COLUMNS)))
    print(
        f"{arguments.output}: {len(gen)} events of {arguments.model}, seed {arguments.seed}; "
        f"{counts['generated']} generated, {counts['selected']} with a Z above {LEAST_Z_PT:.0f} GeV, {counts['matched']} matched"
    )


if __name__ == "__main__":
    main()
