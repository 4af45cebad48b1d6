"""The benchmark engine: environments, apps, measuring, cases, report."""
