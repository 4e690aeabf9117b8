# installed later
